"""Interface of tasks: settings, requirements on a model, and the registry of all tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from ....errors import ActivememError, nearest_hint
from ....grammar.model_config import ModelInterface
from ....plugins import Registry
from ...text.strict_model import NamedSettings, key_descriptions, read_named

LINE_TOKENS = 40
"""The assumed length of sequences whose length depends on the data."""

TEST_SETS = "Test set"
"""The title of an index of numbered test sets, as in `test_accuracy[8]`."""


class TaskError(ActivememError):
    """Error for a task that does not exist, or for a length that a task does not allow."""


class TaskKind(StrEnum):
    """The kind of output that a task requires of a model."""

    TAGGING = "an output for each token of its input"
    CAUSAL_TAGGING = "an output for each token, from it and earlier tokens"
    LANGUAGE = "an output for each token, from those before it"
    REGRESSION = "one output for a whole sequence"
    CLASSIFICATION = "a class for a whole sequence"
    TOKEN_CLASSIFICATION = "a class for each token of its input"
    TRANSDUCTION = "a sequence of another length"

    @property
    def causal(self) -> bool:
        """True if an output must not depend on later inputs."""
        return self in (TaskKind.LANGUAGE, TaskKind.CAUSAL_TAGGING)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInterface:
    """A task's requirements on a model, and a typical sequence length.

    `tokens` is None if the length grows in training; `past` positions before them are kept.
    """

    model: ModelInterface
    tokens: int | None = None
    past: int = 0


DEFAULT_PIECES = 32_000
"""The default vocabulary size; own files that are too small for it get a smaller bpe vocabulary."""


TASKS: Registry[TaskSpec] = Registry("task")
"""Every task by its name, built in or from plug-ins."""


class TaskSettings(NamedSettings, ABC):
    """Base class for the keys of `[task]`: every task has `name`, and subclasses add their own keys."""

    registry: ClassVar = TASKS
    test_keys: ClassVar[frozenset[str]] = frozenset()  # they change only the test after the training

    name: str
    """the name of the task"""

    @property
    def spec(self) -> TaskSpec:
        """The registered task that the key `name` selects."""
        return require_task(self.name)

    @property
    @abstractmethod
    def interface(self) -> TaskInterface:
        """The task's requirements on a model; raise CorpusError or TaskError if settings are invalid."""

    @property
    def longest_row(self) -> int | None:
        """The most tokens of an example that is a line of text, a pair or a labelled sequence, else None.

        The lengths of such rows follow from the data, so batches have different lengths.
        """
        return None

    @abstractmethod
    def epoch_scores(self, *, grows: bool) -> tuple[str, ...]:
        """Return the task's metrics after each epoch, besides the loss. `grows`: training lengths grow."""

    def end_scores(self, tested: tuple[str, ...]) -> tuple[str, ...]:
        """Return the task's metrics at the end of a training.

        `tested` are the metrics of the dev split, under their names for the test split.
        """
        return tested

    def guessed_value(self, metric: str, test_set: str = "") -> float | None:
        """Return the value of a metric that a model reaches by guessing without its input; None if unknown.

        `metric` is named without an index; `test_set` is its index, or "" for all test sets together.
        """
        return None

    @property
    def test_set_names(self) -> tuple[str, ...]:
        """The names of the test sets, such as `40` in `test_loss[40]`, as far as known."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """A registered task.

    `settings` is the class that holds its keys of `[task]`. `test_sets_title` is the column heading above the
    names of its test sets, such as `Length`. `meaning` explains the numbers in inputs and targets.
    """

    name: str
    kind: TaskKind
    summary: str
    source: str
    settings: type[TaskSettings]
    test_sets_title: str = TEST_SETS
    meaning: str = ""

    @property
    def keys(self) -> dict[str, str]:
        """The keys of `[task]` except `name`, with their descriptions."""
        described = key_descriptions(self.settings)
        return {key: described.get(key, "") for key in self.settings.model_fields if key != "name"}


def add_own_task(spec: TaskSpec) -> None:
    """Register a task that activemem itself defines, not a plug-in."""
    TASKS.register(spec.name, spec, own=True)


def require_task(name: str) -> TaskSpec:
    """Return the task with this name; raise TaskError with the nearest name or all names."""
    spec = TASKS.get(name)
    if spec is None:
        raise TaskError(f"unknown task '{name}'{nearest_hint(name, TASKS)}")
    return spec


def task_names() -> tuple[str, ...]:
    """Return the sorted names of all tasks."""
    return tuple(sorted(TASKS))


READ_TASK = read_named(TaskSettings)
"""The reader of the table `[task]`."""

read_task_settings = READ_TASK.read
"""Returns the settings of a table `[task]`; raises ValueError with every fault."""
