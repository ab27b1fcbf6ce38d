"""The interface of an objective: the data of a trial, its loss, and its metrics after each epoch."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, Generic, NamedTuple, SupportsFloat, TypeVar

import torch
from torch import Tensor, nn

from ...blocks import Model
from ...blocks.models.model import find_places
from ...grammar import ModelInterface
from ...plugins import plugin_errors
from ...storage import WrittenOutputs
from ...studies.catalog.metrics import METRICS, Measure
from ...studies.catalog.tasks import Examples, TaskKind
from ...studies.schema.settings import TrialSettings
from ..core.models import autocast
from ..core.process import derive_seed

Metrics = dict[str, float]
ModelOf = TypeVar("ModelOf", bound=nn.Module)
BatchOf = TypeVar("BatchOf")

Observer = Callable[[Tensor, Tensor, Tensor], None]
"""Callback with the inputs, and the outputs and targets at all scored positions, as for metrics."""


def on_device(rows: Tensor, device: torch.device) -> Tensor:
    """Copy rows to a device without waiting for the copy.

    For a GPU the rows are first pinned in memory. The rows must be contiguous: otherwise torch first makes a
    copy in pageable memory.
    """
    if device.type != "cuda":
        return rows.to(device)
    return rows.contiguous().pin_memory().to(device, non_blocking=True)


def part_of(rows: Tensor, part: int, parts: int) -> Tensor:
    """Return the rows in micro-batch `part` of `parts`; the first ones may have a row more."""
    return rows.tensor_split(parts)[part]


def micro_batch_weight(count: int, part: int, parts: int) -> float:
    """Return the factor that weights the mean loss of a micro-batch.

    With these factors, the mean over all `parts` is the mean of the batch, even if the micro-batches differ
    in size. `count` is the size of the batch.
    """
    return (count // parts + (part < count % parts)) * parts / count


def _cut(examples: Examples, cut: Callable[[Tensor], Tensor]) -> Examples:
    inputs, targets, lengths = examples
    return Examples(cut(inputs), cut(targets), None if lengths is None else cut(lengths))


def micro_batch(examples: Examples, part: int, parts: int) -> Examples:
    """Return micro-batch number `part` of `parts`."""
    return _cut(examples, lambda rows: part_of(rows, part, parts))


def split_examples(examples: Examples, size: int) -> Iterator[Examples]:
    """Yield examples in groups of at most `size`."""
    for start in range(0, len(examples.inputs), size):
        yield _cut(examples, itemgetter(slice(start, start + size)))


def scored_on_device(targets: Tensor, scored: Tensor, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the scored targets and their flat indices, on the device.

    The mask `scored` marks these targets. Both results are (count,). `targets` and `scored`, both (batch,
    length), are on the host. Counting them on the host avoids waiting for a GPU.
    """
    places = find_places(scored)
    return on_device(targets.flatten()[places], device), on_device(places, device)


class Answers(NamedTuple):
    """The inputs, outputs and targets of a model.

    Outputs and targets are only those at the positions that count in the loss. All are on the model's device.
    """

    inputs: Tensor
    outputs: Tensor
    targets: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class StepShape:
    """The size of a training step, from which its FLOPs are computed.

    `tokens` is the number of tokens per sequence. `past` is the number of earlier tokens that the model still
    sees in each sequence.
    """

    sequences: int
    tokens: int
    past: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CausalView:
    """A sequence and a model function for testing causality.

    The test fails if an output depends on later inputs. `inputs` (length,) are symbols between `first` and
    `first + symbols`. `outputs` maps the model and inputs (rows, length), both on any device, to (rows,
    length, …), or to fewer positions.
    """

    inputs: Tensor
    first: int
    symbols: int
    outputs: Callable[[nn.Module, Tensor], Tensor]


class Objective(ABC, Generic[ModelOf]):
    """The data, the loss and the metrics of one trial.

    Each objective draws its data with its own random generators. The generators are always on the CPU, so the
    data of a trial are the same on every device. `folder` has the corpora. The batch of a step is processed
    in `parts`.
    """

    def __init__(self, settings: TrialSettings, device: torch.device, folder: Path) -> None:
        self.settings, self.device = settings, device
        self.interface: ModelInterface = settings.task.interface.model
        self.observer: Observer | None = None  # it is called with the tensors of each loss
        self.evaluation_parts = 1  # the number of parts of each batch in evaluations

    @property
    def solved(self) -> bool:
        """Return whether training can stop before its last epoch because nothing is left to learn."""
        return False

    @property
    @abstractmethod
    def step_shape(self) -> StepShape:
        """Return the size of the next training step: its numbers of sequences and tokens."""

    def autocast(self) -> AbstractContextManager[object]:
        """Return a context that sets the trial's precision for the next training step.

        On a CPU, a small step may be computed in float32, which is faster there.
        """
        train = self.settings.train
        if train.precision == "float32":
            return nullcontext()
        shape = self.step_shape
        positions = shape.sequences * shape.tokens // train.accumulate
        return autocast(self.settings, self.device, positions)

    @property
    def _scored_at_once(self) -> int:
        return max(1, self.settings.train.batch_size // self.evaluation_parts)

    def epoch_shapes(self, steps: int) -> Mapping[StepShape, int]:
        """Count the batches of each shape in the current epoch of `steps` steps."""
        return {self.step_shape: steps}

    @abstractmethod
    def begin_batch(self, parts: int) -> None:
        """Draw the next batch and divide it into `parts` micro-batches.

        `loss` then computes the loss of one micro-batch at a time.
        """

    @abstractmethod
    def loss(self, model: ModelOf, part: int, parts: int) -> Tensor:
        """Return the loss of micro-batch number `part` of the current batch.

        The mean over all micro-batches is the batch's loss. The observer, if there is one, gets the inputs,
        outputs and targets.
        """

    def _show(self, inputs: Tensor, outputs: Tensor, targets: Tensor) -> None:
        if self.observer is not None:
            self.observer(inputs, outputs, targets)

    @abstractmethod
    def evaluate(self, model: ModelOf, *, last: bool) -> Metrics:
        """Return the metrics after an epoch. The model is in evaluation mode. `last` marks the last epoch."""

    def causal_view(self) -> CausalView | None:
        """Return the data for testing causality, or None if the task is not causal."""
        return None

    def outputs(self) -> WrittenOutputs | None:
        """Return outputs for the test split, computed after the last epoch, or None if there are none."""
        return None

    @abstractmethod
    def test_batches(self) -> Iterator[Examples]:
        """Return batches of test examples, for probes of the trained model."""

    def symbols(self) -> dict[str, Any] | None:
        """Describe in plain values how text becomes symbols; None if the task has no text."""
        return None

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Return everything that the next epoch depends on, as tensors and plain values."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Resume from a state that `state` returned."""


class FreshObjective(Objective[Model]):
    """An objective that draws a fresh batch for each step. The trial's seed sets the random generator."""

    batch: Examples  # of the current step

    def __init__(self, settings: TrialSettings, device: torch.device, folder: Path) -> None:
        super().__init__(settings, device, folder)
        self._data = torch.Generator().manual_seed(derive_seed(settings.seed, "data"))

    @property
    def step_shape(self) -> StepShape:
        tokens = self.settings.task.interface.tokens
        assert tokens is not None, "a task's sizes include its length"
        return StepShape(sequences=self.settings.train.batch_size, tokens=tokens)

    def begin_batch(self, parts: int) -> None:
        self.batch = self._draw_batch()

    def state(self) -> dict[str, Any]:
        return {"data": self._data.get_state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._data.set_state(state["data"].cpu())

    @abstractmethod
    def _draw_batch(self) -> Examples:
        """Return the batch of the next step."""


class StreamedObjective(Objective[ModelOf], Generic[ModelOf, BatchOf]):
    """An objective with a stream of batches, whose next one depends only on the number of earlier ones."""

    batch: BatchOf  # of the current step

    def __init__(self, settings: TrialSettings, device: torch.device, folder: Path) -> None:
        super().__init__(settings, device, folder)
        self._batches: Iterator[BatchOf] | None = None
        self._drawn = self._symbols = 0

    @property
    def step_shape(self) -> StepShape:
        """Return the mean size of the batches so far, padding included."""
        sequences = self.settings.train.batch_size
        return StepShape(sequences=sequences, tokens=self._symbols // max(self._drawn * sequences, 1))

    def begin_batch(self, parts: int) -> None:
        if self._batches is None:
            self._batches = self._iter_batches(self._drawn)
        self._drawn += 1
        self.batch = next(self._batches)
        self._symbols += self._symbols_of(self.batch)

    def state(self) -> dict[str, Any]:
        """Return the position in the stream, and the number of symbols for `step_shape`."""
        return {"position": self._drawn, "padded": self._symbols}

    def restore(self, state: dict[str, Any]) -> None:
        self._drawn, self._symbols, self._batches = state["position"], state["padded"], None

    @abstractmethod
    def _iter_batches(self, position: int) -> Iterator[BatchOf]:
        """Yield batches without end, beginning after the first `position` batches."""

    @abstractmethod
    def _symbols_of(self, batch: BatchOf) -> int:
        """Return how many symbols a batch has, padding included."""


class RegisteredMetrics:
    """Accumulator of the metrics that plug-ins registered, over one evaluation."""

    def __init__(self, kind: TaskKind, split: str = "") -> None:
        self._measures: dict[str, Measure] = {}
        for name, metric in METRICS.items():
            if metric.measure is not None and kind in metric.kinds and metric.split == split:
                with plugin_errors("metric", name, metric.measure):
                    self._measures[name] = metric.measure()

    def update(self, outputs: Tensor, targets: Tensor, valid: Tensor | None = None) -> None:
        """Add a batch to all metrics.

        If `valid` is set, add only the entries that it marks. `outputs` and `targets` have the form that
        `Measure.update` expects.
        """
        # selecting entries takes time, so do it only if there is a metric
        if self._measures and valid is not None:
            outputs, targets = outputs[valid], targets[valid]
        for name, measure in self._measures.items():
            with plugin_errors("metric", name, METRICS[name].measure):
                measure.update(outputs, targets)

    def compute(self) -> Metrics:
        """Return each metric over all batches; NaN for a metric without a value."""
        found: Metrics = {}
        for name, measure in self._measures.items():
            with plugin_errors("metric", name, METRICS[name].measure):
                found[name] = reported_number(measure.compute())
        return found


def reported_number(value: SupportsFloat | None) -> float:
    """Return a plug-in's value as a number. None, which means no value, becomes NaN."""
    return math.nan if value is None else float(value)
