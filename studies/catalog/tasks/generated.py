"""Tasks that draw their examples from a seeded generator, such as plug-ins' tasks."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pydantic import Field

from ....grammar.model_config import ModelInterface
from ....grammar.vocabulary.spec import Reach
from ....plugins import PluginError, check_part
from ...text.strict_model import class_faults
from .spec import TASKS, TaskError, TaskInterface, TaskKind, TaskSettings, TaskSpec

if TYPE_CHECKING:
    from torch import Generator, Tensor

IGNORED = -100
"""The target at positions that are not scored."""

KINDS = {kind.name.lower(): kind for kind in (TaskKind.TAGGING, TaskKind.CAUSAL_TAGGING, TaskKind.REGRESSION)}
"""The kinds of task that a plug-in can define, by name."""

_SET_NAME = re.compile(r"[\w.-]+")


class Examples(NamedTuple):
    """Input and target tensors of several examples, on the CPU.

    Inputs are symbols (examples, tokens), int64, or numbers (examples, tokens, columns), float32. In tagging
    targets are symbols (examples, tokens), int64, with IGNORED at positions that are not scored; in
    regression they are numbers (examples, targets), float32. `lengths` (examples,) counts the valid tokens;
    None means all.
    """

    inputs: Tensor
    targets: Tensor
    lengths: Tensor | None = None


Draw = Callable[["Generator"], Examples]
"""Draws all examples of a test set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSizes:
    """Sizes that a task requires of a model, such as the number of its symbols.

    `tokens` is the usual length of an input. Inputs are symbols of `vocab`, or `columns` numbers at each
    token. The targets of tagging are symbols of `vocab`, too; regression has `targets` numbers.
    """

    tokens: int
    vocab: int | None = None
    columns: int | None = None
    targets: int | None = None


class GeneratedTask(TaskSettings, ABC):
    """Base class for the `[task]` keys of a task that draws its examples from a random generator.

    Drawn examples must depend only on the settings and the generator, which is on the CPU. Training examples
    are drawn anew for each step, from the trial's seed.
    """

    dev_examples: int = Field(default=1000, ge=1)
    """the number of examples that are scored after each epoch, drawn like the training examples"""

    @property
    @abstractmethod
    def sizes(self) -> TaskSizes:
        """The sizes that the task requires of a model."""

    @abstractmethod
    def draw(self, count: int, generator: Generator) -> Examples:
        """Draw `count` training examples with a random generator."""

    def draw_dev(self, count: int, generator: Generator) -> Examples:
        """Draw `count` dev examples with a random generator: by default like training examples."""
        return self.draw(count, generator)

    def test_sets(self) -> Mapping[str, Draw]:
        """Return the functions that draw test sets, by name: `50` for length 50."""
        return {}

    @property
    def required_reach(self) -> Reach | None:
        """The largest distance, on each side, between a target and an input that can change it.

        In tokens. None if unknown.
        """
        return None

    @property
    def has_one_shape(self) -> bool:
        """True if all training inputs have equal lengths, without padding."""
        return False

    @property
    def chance(self) -> float | None:
        """The accuracy of a model that guesses, at least 0 and below 1; None if unknown.

        The scaled accuracy is 0 at this accuracy, and 1 if all outputs are correct.
        """
        return None

    def guessed_value(self, metric: str, test_set: str = "") -> float | None:
        split, _, score = metric.partition("_")
        if split == "test":
            chance = self.chance_in_test(test_set) if self.test_set_names else None
        else:
            chance = self.chance
        return None if chance is None else {"accuracy": chance, "scaled_accuracy": 0.0}.get(score)

    def chance_in_test(self, name: str = "") -> float | None:
        """Return the accuracy of a guess on a test set, or on all of them together if `name` is empty.

        By default it is `chance`.
        """
        return self.chance

    def solve(self, inputs: Tensor) -> Tensor | None:
        """Compute the targets of inputs; return None if the inputs do not determine them.

        Tests use it to check `required_reach` and the targets of drawn examples.
        """
        return None

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor | None:
        """Return the loss of each scored target, as a tensor with the shape of `targets`.

        A task that does not override this method has the default loss of its kind; None from an override is
        refused. Tagging gets logits (scored, vocab) and symbols (scored,), by default with cross-entropy.
        Regression gets numbers of shape (sequences,) or (sequences, targets) with their targets, by default
        with the squared error.
        """
        return None

    @property
    def interface(self) -> TaskInterface:
        """The task's requirements on a model.

        Raise TaskError if `sizes` raises, or lacks a size that the task's kind needs, such as `vocab`.
        """
        kind = self.spec.kind
        try:
            sizes = self.sizes
        except Exception as error:  # any exception is reported as the plug-in's
            raise TaskError(f"{self.name}: sizes: {type(error).__name__}: {error}") from error
        if faults := _size_faults(kind, sizes):
            raise TaskError(f"{self.name}: {'; '.join(faults)}")
        model = _model_interface(sizes.vocab, sizes.columns, sizes.targets, causal=kind.causal)
        return TaskInterface(model=model, tokens=sizes.tokens)

    def epoch_scores(self, *, grows: bool) -> tuple[str, ...]:
        scaled = () if self.chance is None else ("dev_scaled_accuracy",)
        scores = () if self.spec.kind is TaskKind.REGRESSION else ("dev_accuracy", "dev_exact", *scaled)
        return ("dev_loss", *scores)

    def end_scores(self, tested: tuple[str, ...]) -> tuple[str, ...]:
        return tested if self.test_sets() else ()

    @property
    def test_set_names(self) -> tuple[str, ...]:
        return tuple(self.test_sets())


TaskT = TypeVar("TaskT", bound=GeneratedTask)


def register_task(name: str, *, kind: str, summary: str, source: str) -> Callable[[type[TaskT]], type[TaskT]]:
    """Return a decorator that registers a class of `[task]` keys as a task with this name.

    `kind` is tagging, causal_tagging or regression, `summary` describes inputs and targets, and `source` is
    the task's origin. Raises PluginError for an unknown kind, a name that is taken, or a key without a
    docstring.
    """
    if kind not in KINDS:
        raise PluginError(f"expected a kind of task among {', '.join(KINDS)}, got {kind}")

    def register(settings: type[TaskT]) -> type[TaskT]:
        check_part(class_faults(settings, GeneratedTask))
        TASKS.register(
            name, TaskSpec(name=name, kind=KINDS[kind], summary=summary, source=source, settings=settings)
        )
        return settings

    return register


def check_statements(task: GeneratedTask) -> None:
    """Check that properties of a plug-in's task raise no exception, its `chance`, and the names of test sets.

    Raises TaskError for a fault.
    """
    try:
        names, _, _ = tuple(task.test_sets()), task.required_reach, task.has_one_shape
        chances = (task.chance, *map(task.chance_in_test, ("", *names)))
        wrong = [each for each in chances if each is not None and not 0 <= each < 1]
    except Exception as error:  # any exception is reported as the plug-in's
        text = f"test_sets, required_reach, has_one_shape or chance: {type(error).__name__}: {error}"
        raise TaskError(f"{task.name}: {text}") from error
    if wrong:
        raise TaskError(f"{task.name}: expected a chance of at least 0 and below 1, got {wrong[0]}")
    for name in names:
        if not _SET_NAME.fullmatch(name):
            raise TaskError(
                f"{task.name}: expected letters, digits, '.', '-' and '_' in the name of a test set, "
                f"got '{name}'"
            )


@lru_cache(maxsize=1024)
def _model_interface(
    vocab: int | None, columns: int | None, targets: int | None, *, causal: bool
) -> ModelInterface:
    asked = {"vocab": vocab, "columns": columns, "targets": targets, "causal": causal}
    # not strict, because a plug-in may count with numpy
    return ModelInterface.model_validate(asked, strict=False)


def _size_faults(kind: TaskKind, sizes: TaskSizes) -> list[str]:
    given = {"tokens": sizes.tokens, "vocab": sizes.vocab, "columns": sizes.columns, "targets": sizes.targets}
    faults = [
        f"expected {key} of at least 1, got {size}"
        for key, size in given.items()
        if size is not None and size < 1
    ]
    symbols = kind is not TaskKind.REGRESSION
    if symbols and (sizes.vocab is None or sizes.columns or sizes.targets):
        faults.append(f"expected only vocab, because this task has symbols only, got {_given_keys(given)}")
    if not symbols and ((sizes.vocab is None) == (sizes.columns is None) or sizes.targets is None):
        faults.append(f"expected targets, and either vocab or columns, got {_given_keys(given)}")
    return faults


def _given_keys(given: Mapping[str, int | None]) -> str:
    return ", ".join(key for key, size in given.items() if size is not None and key != "tokens") or "none"
