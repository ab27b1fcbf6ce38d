"""Tasks that draw their examples: fresh ones at each step, dev examples after each epoch, fixed test sets."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...blocks import Model
from ...blocks.models.base_model import find_places
from ...studies.catalog.tasks import IGNORED, Examples, GeneratedTask, TaskError, TaskKind
from ...studies.schema.settings import TrialSettings
from ..core.seeds import derive_seed
from ..tasks.generated import draw_examples, draw_test_set
from .base import (
    Answers,
    CausalView,
    Metrics,
    Objective,
    StepShape,
    on_device,
    rows_of_part,
    scored_on_device,
)
from .registered_metrics import RegisteredMetrics


@dataclass(frozen=True, slots=True)
class Score:
    """The loss of all that is scored, how much of it is right, and how many sequences are without a fault."""

    loss: float = 0.0
    right: int = 0
    count: int = 0
    exact: int = 0
    sequences: int = 0

    def __add__(self, other: Score) -> Score:
        """The score of both together."""
        return Score(
            self.loss + other.loss,
            self.right + other.right,
            self.count + other.count,
            self.exact + other.exact,
            self.sequences + other.sequences,
        )


class GeneratedObjective(Objective[Model]):
    """Examples that the settings of the task draw."""

    def __init__(self, settings: TrialSettings, device: torch.device, folder: Path) -> None:
        super().__init__(settings, device, folder)
        assert isinstance(settings.task, GeneratedTask), f"{settings.task.name} draws no examples"
        self._task, self._kind = settings.task, settings.task.spec.kind
        self._data = torch.Generator().manual_seed(derive_seed(settings.seed, "data"))
        self._batch: Examples | None = None

    @property
    def step_shape(self) -> StepShape:
        """A batch of inputs of the length that represents the task."""
        assert self.interface.tokens is not None, "the sizes of a task say its length"
        return StepShape(sequences=self.settings.train.batch_size, tokens=self.interface.tokens)

    def begin_batch(self, parts: int) -> None:
        """Draw the batch of the next step."""
        del parts
        self._batch = draw_examples(self._task, self.settings.train.batch_size, self._data)

    def loss(self, model: Model, part: int, parts: int) -> Tensor:
        """The mean over what is scored in the batch."""
        assert self._batch is not None, "a batch is begun first"
        rows = rows_of_part(len(self._batch.inputs), part, parts)
        examples = self._rows(self._batch, rows.start, rows.stop - rows.start)
        inputs, outputs, targets = self._answers(model, examples)
        self._show(inputs, outputs, targets)
        return self._task_losses(outputs, targets).sum() * parts / self._num_scored(self._batch.targets)

    def draw(self) -> tuple[Tensor, ...]:
        """The whole next batch, on the CPU; TaskError if its examples have lengths."""
        examples = draw_examples(self._task, self.settings.train.batch_size, self._data)
        if examples.lengths is not None:
            raise TaskError(f"{self._task.name}: expected no lengths, since its batches have one shape")
        return self._scored(examples)

    def loss_of(self, model: nn.Module, *batch: Tensor) -> Tensor:
        """The mean over what is scored in a whole batch."""
        assert isinstance(model, Model)
        return self._task_losses(*self._scored_outputs(model, *batch)).mean()

    def evaluate(self, model: Model, *, last: bool) -> Metrics:
        """The scores of the dev examples, and after the last epoch of each test set and of all together."""
        registered = self._registered("dev")
        measured = self._measures(self._score(model, self._dev, registered), "dev") | registered.compute()
        names = tuple(self._task.test_sets()) if last else ()
        if not names:
            return measured
        registered, total = self._registered("test"), Score()
        for name in names:
            score = self._score(model, draw_test_set(self._task, name), registered)
            measured |= self._measures(score, "test", f"[{name}]")
            total += score
        return measured | self._measures(total, "test") | registered.compute()

    def test_batches(self) -> Iterator[Examples]:
        """Those of the test sets, or the dev examples where there are none."""
        size, names = self.settings.train.batch_size, tuple(self._task.test_sets())
        for examples in [draw_test_set(self._task, name) for name in names] or [self._dev]:
            for start in range(0, len(examples.inputs), size):
                yield self._rows(examples, start, size)

    def state(self) -> dict[str, Any]:
        """The generator of the training's examples."""
        return {"data": self._data.get_state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state."""
        self._data.set_state(state["data"].cpu())

    @cached_property
    def _dev(self) -> Examples:
        """The dev examples, drawn from a seed of their own."""
        generator = torch.Generator().manual_seed(derive_seed(self.settings.seed, "evaluation"))
        return draw_examples(self._task, self._task.dev_examples, generator)

    @abstractmethod
    def _scored(self, examples: Examples) -> tuple[Tensor, ...]:
        """What the outputs and the targets of all that is scored follow from, of one shape."""

    @abstractmethod
    def _scored_outputs(self, model: Model, *scored: Tensor) -> tuple[Tensor, Tensor]:
        """Return the outputs and the targets of the scored positions."""

    @abstractmethod
    def _answers(self, model: Model, examples: Examples) -> Answers:
        """What the model says and what it should, of all that is scored."""

    def _task_losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The loss of each, the task's own if it has one; TaskError if that is not one of each target."""
        own = self._task.losses(outputs, targets)
        if own is not None and own.shape != targets.shape:
            shapes = f"expected losses {tuple(targets.shape)}, one for each target, got {tuple(own.shape)}"
            raise TaskError(f"{self._task.name}: {shapes}")
        return self._losses(outputs, targets) if own is None else own

    @abstractmethod
    def _losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The loss of each that the kind has."""

    @abstractmethod
    def _measures(self, score: Score, split: str, index: str = "") -> Metrics:
        """The metrics of a split, or of the set of it with that index."""

    @abstractmethod
    def _num_scored(self, targets: Tensor) -> int:
        """How many of the targets are scored."""

    @abstractmethod
    def _rightness(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Whether each output is right."""

    @abstractmethod
    def _rows_asked(self, examples: Examples) -> Tensor:
        """The example that each of all that is scored is of."""

    def _registered(self, split: str) -> RegisteredMetrics:
        """The registered metrics of a split; kinds without splits have theirs on the dev examples."""
        whole = split == "dev" and self._kind is not TaskKind.CAUSAL_TAGGING
        return RegisteredMetrics(self._kind, "" if whole else split)

    def _score(self, model: Model, examples: Examples, registered: RegisteredMetrics) -> Score:
        """The score of examples, each once; registered metrics see them, too."""
        total, size = Score(), self._scored_at_once
        for start in range(0, len(examples.inputs), size):
            rows = self._rows(examples, start, size)
            _, outputs, targets = self._answers(model, rows)
            outputs = outputs.float()
            registered.update(outputs, targets)
            right, asked = self._rightness(outputs, targets).cpu(), self._rows_asked(rows)
            sequences = asked.unique()
            total += Score(
                loss=float(self._task_losses(outputs, targets).double().sum()),
                right=int(right.sum()),
                count=targets.numel(),
                exact=len(sequences) - len(asked[~right].unique()),
                sequences=len(sequences),
            )
        return total

    def _rows(self, examples: Examples, start: int, count: int) -> Examples:
        """Some of the examples."""
        rows = slice(start, start + count)
        inputs, targets, lengths = examples
        return Examples(inputs[rows], targets[rows], None if lengths is None else lengths[rows])

    def _given(self, examples: Examples) -> tuple[Tensor, Tensor | None]:
        """The inputs and their lengths, on the device."""
        inputs, _, lengths = examples
        return on_device(inputs, self.device), None if lengths is None else on_device(lengths, self.device)


class TaggingExamplesObjective(GeneratedObjective):
    """Symbols at the positions that are scored; outputs are computed there alone."""

    def causal_view(self) -> CausalView | None:
        """The longest example that is scored and what is said of its tokens, if the task is causal.

        Behind a bottleneck every output may see all of the input, and what the body makes of a token may not.
        """
        if not self.interface.causal:
            return None
        assert self.interface.vocab is not None, "tagging is of symbols"
        return CausalView(
            inputs=self._longest_inputs.to(self.device),
            first=0,
            symbols=self.interface.vocab,
            outputs=self._causal_outputs,
        )

    def _causal_outputs(self, model: nn.Module, rows: Tensor) -> Tensor:
        """What may depend on no later input."""
        assert isinstance(model, Model)
        return model.codes(rows) if self.interface.bottleneck else model(rows)

    @cached_property
    def _longest_inputs(self) -> Tensor:
        """The inputs of the longest of the dev examples and of those of test sets, without padding."""
        found = [_longest(self._dev)]
        found += [_longest(draw_test_set(self._task, name)) for name in self._task.test_sets()]
        return max(found, key=len)

    def _scored(self, examples: Examples) -> tuple[Tensor, ...]:
        places = find_places(examples.targets != IGNORED)
        return examples.inputs, examples.targets.flatten()[places], places

    def _scored_outputs(self, model: Model, *scored: Tensor) -> tuple[Tensor, Tensor]:
        inputs, targets, places = scored
        return model.outputs_at(inputs, places), targets

    def _answers(self, model: Model, examples: Examples) -> Answers:
        inputs, lengths = self._given(examples)
        targets, places = scored_on_device(examples.targets, examples.targets != IGNORED, self.device)
        return Answers(inputs, model.outputs_at(inputs, places, lengths), targets)

    def _losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return functional.cross_entropy(outputs, targets, reduction="none")

    def _measures(self, score: Score, split: str, index: str = "") -> Metrics:
        accuracy, chance = score.right / score.count, self._task.chance
        scaled = {} if chance is None else {f"{split}_scaled_accuracy": (accuracy - chance) / (1 - chance)}
        measured = {
            f"{split}_loss": score.loss / score.count,
            f"{split}_accuracy": accuracy,
            f"{split}_exact": score.exact / score.sequences,
            **scaled,
        }
        return {f"{name}{index}": value for name, value in measured.items()}

    def _num_scored(self, targets: Tensor) -> int:
        return int((targets != IGNORED).sum())

    def _rightness(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return outputs.argmax(-1) == targets

    def _rows_asked(self, examples: Examples) -> Tensor:
        return (examples.targets != IGNORED).nonzero()[:, 0]


class NumberExamplesObjective(GeneratedObjective):
    """Numbers for each sequence, by their squared error."""

    def _scored(self, examples: Examples) -> tuple[Tensor, ...]:
        return examples.inputs, examples.targets

    def _scored_outputs(self, model: Model, *scored: Tensor) -> tuple[Tensor, Tensor]:
        inputs, targets = scored
        return model(inputs).squeeze(-1), targets.squeeze(-1)

    def _answers(self, model: Model, examples: Examples) -> Answers:
        inputs, lengths = self._given(examples)
        targets = on_device(examples.targets, self.device)
        return Answers(inputs, model(inputs, lengths).squeeze(-1), targets.squeeze(-1))

    def _losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return functional.mse_loss(outputs, targets, reduction="none")

    def _measures(self, score: Score, split: str, index: str = "") -> Metrics:
        return {f"{split}_loss{index}": score.loss / score.count}

    def _num_scored(self, targets: Tensor) -> int:
        return targets.numel()

    def _rightness(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs == targets).flatten(1).all(1) if outputs.dim() > 1 else outputs == targets

    def _rows_asked(self, examples: Examples) -> Tensor:
        return torch.arange(len(examples.inputs))


def _longest(examples: Examples) -> Tensor:
    """The inputs of the first of the longest examples, without padding."""
    if examples.lengths is None:
        return examples.inputs[0]
    longest = int(examples.lengths.argmax())
    return examples.inputs[longest, : int(examples.lengths[longest])]
