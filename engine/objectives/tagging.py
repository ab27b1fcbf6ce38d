"""An output for each token: the algorithmic tasks, at lengths that grow with what is learnt or are drawn."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...blocks import Model
from ...studies.catalog.tasks import DEV_SEQUENCES, AlgorithmicSettings, Examples, TaskKind
from ...studies.schema.settings import TrialSettings
from ..core.seeds import derive_seed
from ..tasks import Batch, get_task
from ..tasks.scored_sequences import draw_dev_batches, draw_test_batch
from .base import Metrics, Objective, StepShape, on_device, rows_of_part, weight_of_part
from .registered_metrics import RegisteredMetrics


class TaggingObjective(Objective[Model]):
    """Fresh batches of one length each; after the last epoch the test sequences of each test length."""

    def __init__(self, settings: TrialSettings, device: torch.device, folder: Path) -> None:
        super().__init__(settings, device, folder)
        assert isinstance(settings.task, AlgorithmicSettings), f"{settings.task.name} has no lengths"
        self._settings, self._task = settings.task, get_task(settings.task.name)
        self._data = torch.Generator().manual_seed(derive_seed(settings.seed, "data"))
        self._batch: Batch | None = None

    def begin_batch(self, parts: int) -> None:
        """Draw the batch of the next step."""
        del parts
        self._batch = self._draw_batch()

    def loss(self, model: Model, part: int, parts: int) -> Tensor:
        """Cross-entropy of every token."""
        assert self._batch is not None, "a batch is begun first"
        count = len(self._batch[0])
        here = rows_of_part(count, part, parts)
        inputs, targets = (on_device(rows[here], self.device) for rows in self._batch)
        logits = model(inputs).flatten(0, 1)  # (batch * tokens, vocab)
        self._show(inputs, logits, targets.flatten())
        return functional.cross_entropy(logits, targets.flatten()) * weight_of_part(count, part, parts)

    def draw(self) -> tuple[Tensor, ...]:
        """The whole next batch, on the CPU."""
        return tuple(self._draw_batch())

    def loss_of(self, model: nn.Module, *batch: Tensor) -> Tensor:
        """Cross-entropy of every token of a whole batch."""
        inputs, targets = batch
        return functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())

    @property
    def _tested_at_once(self) -> int:
        """As many sequences as in a part of a step, or fewer."""
        return max(1, self._scored_at_once // self.settings.train.accumulate)

    def evaluate(self, model: Model, *, last: bool) -> Metrics:
        """What is measured after each epoch, and after the last one at each test length."""
        measured = self._evaluate_epoch(model)
        return measured | self._test(model) if last and self._settings.test_lengths else measured

    def test_batches(self) -> Iterator[Examples]:
        """The sequences of each test length, or of each length in training; of a curriculum, of its first."""
        lengths = self._settings.test_lengths
        batches = [draw_test_batch(self._task, self._settings, length) for length in lengths]
        for batch in batches or self._dev_batches():
            rows = zip(*(each.split(self.settings.train.batch_size) for each in batch), strict=True)
            yield from (Examples(inputs, targets) for inputs, targets in rows)

    @abstractmethod
    def _dev_batches(self) -> Sequence[Batch]:
        """Sequences that are scored after an epoch."""

    @abstractmethod
    def _draw_batch(self) -> Batch:
        """The batch of the next step."""

    @abstractmethod
    def _evaluate_epoch(self, model: Model) -> Metrics:
        """The metrics after an epoch."""

    def _test(self, model: Model) -> Metrics:
        """Loss, share of right symbols and share of sequences without a fault: by length, and their means.

        Each length counts the same in a mean, however many symbols it has.
        """
        found: Metrics = {}
        means: dict[str, list[float]] = {}
        for length in self._settings.test_lengths:
            batch = draw_test_batch(self._task, self._settings, length)
            for name, value in self._score(model, [batch]).metrics("test").items():
                found[f"{name}[{length}]"] = value
                means.setdefault(name, []).append(value)
        return {name: fmean(values) for name, values in means.items()} | found

    def _score(
        self, model: Model, batches: Iterable[Batch], registered: RegisteredMetrics | None = None
    ) -> SequenceScore:
        """The score of sequences, as many at a time as in training; registered metrics see them, too."""
        total = SequenceScore()
        for batch in batches:
            rows = zip(*(each.split(self._tested_at_once) for each in batch), strict=True)
            for inputs, targets in rows:
                total += self._score_rows(model, inputs.to(self.device), targets.to(self.device), registered)
        return total

    def _score_rows(
        self, model: Model, inputs: Tensor, targets: Tensor, registered: RegisteredMetrics | None
    ) -> SequenceScore:
        logits = model(inputs).float()  # (batch, tokens, vocab)
        if registered is not None:
            registered.update(logits.flatten(0, 1), targets.flatten())
        losses = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
        right = logits.argmax(-1) == targets
        return SequenceScore(
            loss=float(losses.double().sum()),
            right=int(right.sum()),
            exact=int(right.all(-1).sum()),
            symbols=targets.numel(),
            sequences=len(targets),
        )


class GrowingLengthObjective(TaggingObjective):
    """The length grows whenever the accuracy on fresh sequences of it is high enough."""

    def __init__(self, settings: TrialSettings, device: torch.device, folder: Path) -> None:
        super().__init__(settings, device, folder)
        curriculum = settings.train.curriculum
        assert curriculum is not None, "a length that grows without a curriculum"
        self._fresh = torch.Generator().manual_seed(derive_seed(settings.seed, "evaluation"))
        self._curriculum = Curriculum(
            length=curriculum.start,
            step=self._task.spec.length_step,
            grow_at=curriculum.grow_at,
            end=curriculum.end,
        )

    @property
    def step_shape(self) -> StepShape:
        """A batch of the current length."""
        tokens = self._task.spec.sequence_length(self._curriculum.length)
        return StepShape(sequences=self.settings.train.batch_size, tokens=tokens)

    def state(self) -> dict[str, Any]:
        """The generators and the curriculum."""
        return {
            "data": self._data.get_state(),
            "fresh": self._fresh.get_state(),
            "curriculum": self._curriculum.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state."""
        self._data.set_state(state["data"].cpu())
        self._fresh.set_state(state["fresh"].cpu())
        self._curriculum = Curriculum(**state["curriculum"])

    def _draw_batch(self) -> Batch:
        return self._draw(self.settings.train.batch_size, self._data)

    def _evaluate_epoch(self, model: Model) -> Metrics:
        """The fraction of right tokens in fresh sequences, their length, and the longest length passed."""
        length, registered = self._curriculum.length, RegisteredMetrics(TaskKind.TAGGING)
        if self._settings.dev_sequences is None:
            accuracy = self._accuracy_of_one_batch(model, registered)
        else:
            fresh = self._draw(self._settings.dev_sequences, self._fresh)
            accuracy = self._score(model, [fresh], registered).accuracy
        self._curriculum.record(accuracy)
        return {
            "accuracy": accuracy,
            "length": float(length),
            "max_length": float(self._curriculum.passed),
            **registered.compute(),
        }

    def _dev_batches(self) -> Sequence[Batch]:
        return [self._draw(self._settings.dev_sequences or self.settings.train.batch_size, self._fresh)]

    def _accuracy_of_one_batch(self, model: Model, registered: RegisteredMetrics) -> float:
        """The accuracy in as many sequences as a step has, all at once where memory is enough."""
        batch, right = self._draw(self.settings.train.batch_size, self._fresh), 0
        for rows in zip(*(each.split(self._scored_at_once) for each in batch), strict=True):
            inputs, targets = (each.to(self.device) for each in rows)
            logits = model(inputs)
            registered.update(logits.flatten(0, 1), targets.flatten())
            right += int((logits.argmax(-1) == targets).sum())
        return right / batch.targets.numel()

    def _draw(self, count: int, generator: torch.Generator) -> Batch:
        return self._task.batch(count, self._curriculum.length, generator, vocab=self.interface.vocab)


class DrawnLengthObjective(TaggingObjective):
    """Each batch has one of the lengths of [train]; dev sequences, always the same, are of all of them."""

    def __init__(self, settings: TrialSettings, device: torch.device, folder: Path) -> None:
        super().__init__(settings, device, folder)
        assert settings.train.lengths is not None, "lengths to draw from"
        self._lengths = self._task.spec.lengths(*settings.train.lengths)
        self._drawn = Counter[int]()

    @property
    def step_shape(self) -> StepShape:
        """A batch of the longest length."""
        return self._shape(self._lengths[-1])

    def epoch_shapes(self) -> Mapping[StepShape, int]:
        """How many steps of the epoch had each length."""
        return {self._shape(length): steps for length, steps in self._drawn.items()}

    def state(self) -> dict[str, Any]:
        """The generator of the training, and the lengths of the epoch so far."""
        return {"data": self._data.get_state(), "drawn": dict(self._drawn)}

    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state."""
        self._data.set_state(state["data"].cpu())
        self._drawn = Counter(state["drawn"])

    def _draw_batch(self) -> Batch:
        length = self._lengths[int(torch.randint(len(self._lengths), (), generator=self._data))]
        self._drawn[length] += 1
        vocab = self.interface.vocab
        return self._task.batch(self.settings.train.batch_size, length, self._data, vocab=vocab)

    def _evaluate_epoch(self, model: Model) -> Metrics:
        """The score of the dev sequences."""
        registered = RegisteredMetrics(TaskKind.TAGGING)
        score = self._score(model, self._dev, registered)
        self._drawn.clear()
        return score.metrics("dev") | registered.compute()

    def _dev_batches(self) -> Sequence[Batch]:
        return self._dev

    @cached_property
    def _dev(self) -> tuple[Batch, ...]:
        """The dev sequences, drawn from a seed of their own."""
        return draw_dev_batches(
            self._task,
            self._lengths,
            count=self._settings.dev_sequences or DEV_SEQUENCES,
            vocab=self.interface.vocab,
            seed=derive_seed(self.settings.seed, "evaluation"),
        )

    def _shape(self, length: int) -> StepShape:
        tokens = self._task.spec.sequence_length(length)
        return StepShape(sequences=self.settings.train.batch_size, tokens=tokens)


@dataclass(frozen=True, slots=True)
class SequenceScore:
    """The loss of sequences in nats, and how many symbols and whole sequences are right, of how many."""

    loss: float = 0.0
    right: int = 0
    exact: int = 0
    symbols: int = 0
    sequences: int = 0

    def __add__(self, other: SequenceScore) -> SequenceScore:
        """The score of both together."""
        return SequenceScore(
            self.loss + other.loss,
            self.right + other.right,
            self.exact + other.exact,
            self.symbols + other.symbols,
            self.sequences + other.sequences,
        )

    @property
    def accuracy(self) -> float:
        """The share of symbols that are right."""
        return self.right / self.symbols

    def metrics(self, split: str) -> Metrics:
        """The metrics of a split."""
        return {
            f"{split}_loss": self.loss / self.symbols,
            f"{split}_accuracy": self.accuracy,
            f"{split}_exact": self.exact / self.sequences,
        }


@dataclass(slots=True, kw_only=True)
class Curriculum:
    """The length in training, and the highest length that has been passed (0 before the first)."""

    length: int
    step: int
    grow_at: float
    end: int | None = None
    passed: int = 0

    def record(self, accuracy: float) -> None:
        """Record the accuracy at the current length, a fraction of tokens; grow if it is high enough."""
        if accuracy >= self.grow_at:
            self.passed = self.length
            if self.end is None or self.length + self.step <= self.end:
                self.length += self.step

    def state(self) -> dict[str, float | None]:
        """Everything needed to resume, as plain numbers."""
        return asdict(self)
