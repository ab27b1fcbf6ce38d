"""Objectives of tasks that draw their examples.

Training steps get fresh examples, evaluations always the same ones. `GeneratedObjective` takes its examples
from the task's settings, which may be a plug-in's. `AlgorithmicObjective` draws sequences whose length grows
with a curriculum or is random.
"""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...blocks import Model
from ...blocks.models.model import find_places
from ...studies.catalog.tasks import (
    DEV_SEQUENCES,
    IGNORED,
    AlgorithmicSettings,
    Examples,
    GeneratedTask,
    TaskError,
    TaskKind,
)
from ...studies.schema.settings import TrialSettings
from ..core.process import derive_seed
from ..tasks.algorithmic import draw_dev_batches, draw_test_batch, get_task
from ..tasks.generated import draw_dev, draw_examples, draw_test_set, own_losses
from .base import (
    Answers,
    CausalView,
    FreshObjective,
    Metrics,
    RegisteredMetrics,
    StepShape,
    micro_batch,
    micro_batch_weight,
    on_device,
    split_examples,
)


@dataclass(frozen=True, slots=True)
class Score:
    """Running sums for the loss and accuracy of a split.

    Only scored targets count. The metrics of the split are computed from them. `loss` is the sum of losses,
    `right` counts correct targets, and `exact` counts sequences without an error. Without `sequences`, only
    the loss is measured.
    """

    loss: float = 0.0
    count: int = 0
    right: int = 0
    exact: int = 0
    sequences: int = 0

    def __add__(self, other: Score) -> Score:
        return Score(*map(operator.add, astuple(self), astuple(other)))

    @property
    def accuracy(self) -> float:
        """Return the share of correct targets."""
        return self.right / self.count

    def metrics(self, split: str, chance: float | None = None) -> Metrics:
        """Return the metrics of a split, with names such as `dev_loss`.

        If `chance`, the accuracy of a guess, is known, the accuracy scaled by it is added.
        """
        found = {"loss": self.loss / self.count}
        if self.sequences:
            found |= {"accuracy": self.accuracy, "exact": self.exact / self.sequences}
            if chance is not None:
                found["scaled_accuracy"] = (self.accuracy - chance) / (1 - chance)
        return {f"{split}_{name}": value for name, value in found.items()}


class GeneratedObjective(FreshObjective):
    """Objective of a task that draws its own examples, whose targets are symbols or numbers.

    Symbols are trained by cross-entropy, and only where they are scored; numbers by squared error.
    """

    def __init__(self, settings: TrialSettings, device: torch.device, folder: Path) -> None:
        super().__init__(settings, device, folder)
        assert isinstance(settings.task, GeneratedTask), f"{settings.task.name} draws no examples"
        self._task, self._kind = settings.task, settings.task.spec.kind

    def _draw_batch(self) -> Examples:
        return draw_examples(self._task, self.settings.train.batch_size, self._data)

    def loss(self, model: Model, part: int, parts: int) -> Tensor:
        inputs, outputs, targets = self._answers(model, micro_batch(self.batch, part, parts))
        self._show(inputs, outputs, targets)
        # divide by the count of the whole batch, since its parts may have different counts
        return self._losses(outputs, targets).sum() * parts / self._scored(self.batch)[1].numel()

    def evaluate(self, model: Model, *, last: bool) -> Metrics:
        """Return the metrics of the dev examples and, after the last epoch, of the test sets."""
        registered = self._registered("dev")
        score = self._score(model, self._dev, registered)
        measured = score.metrics("dev", self._task.chance) | registered.compute()
        names = tuple(self._task.test_sets()) if last else ()
        if not names:
            return measured
        registered, total = self._registered("test"), Score()
        for name in names:
            score = self._score(model, draw_test_set(self._task, name), registered)
            found = score.metrics("test", self._task.chance_in_test(name))
            measured |= {f"{metric}[{name}]": value for metric, value in found.items()}
            total += score
        return measured | total.metrics("test", self._task.chance_in_test()) | registered.compute()

    def test_batches(self) -> Iterator[Examples]:
        names = tuple(self._task.test_sets())
        for examples in [draw_test_set(self._task, name) for name in names] or [self._dev]:
            yield from split_examples(examples, self.settings.train.batch_size)

    @cached_property
    def _dev(self) -> Examples:
        generator = torch.Generator().manual_seed(derive_seed(self.settings.seed, "evaluation"))
        return draw_dev(self._task, generator)

    def _scored(self, examples: Examples) -> tuple[Tensor, ...]:
        """Return the inputs, the scored targets and, for symbols, their flat indices, on a CPU."""
        if self._kind is TaskKind.REGRESSION:
            return examples.inputs, examples.targets.squeeze(-1)
        places = find_places(examples.targets != IGNORED)
        return examples.inputs, examples.targets.flatten()[places], places

    def _outputs(
        self, model: Model, inputs: Tensor, *places: Tensor, lengths: Tensor | None = None
    ) -> Tensor:
        """Return the model's outputs for the scored targets. `places` are the indices from `_scored`."""
        if not places:
            return model(inputs, lengths).squeeze(-1)
        return model.outputs_at(inputs, *places, lengths=lengths)

    def _answers(self, model: Model, examples: Examples) -> Answers:
        inputs, targets, *places = (on_device(each, self.device) for each in self._scored(examples))
        lengths = None if examples.lengths is None else on_device(examples.lengths, self.device)
        return Answers(inputs, self._outputs(model, inputs, *places, lengths=lengths), targets)

    def _losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of each target, from the task's own loss function if there is one."""
        own = own_losses(self._task, outputs, targets)
        if own is None:
            default = functional.mse_loss if self._kind is TaskKind.REGRESSION else functional.cross_entropy
            return default(outputs, targets, reduction="none")
        if own.shape != targets.shape:
            shapes = f"expected losses {tuple(targets.shape)}, one for each target, got {tuple(own.shape)}"
            raise TaskError(f"{self._task.name}: {shapes}")
        return own

    def _registered(self, split: str) -> RegisteredMetrics:
        # kinds of tasks without splits measure on the dev examples
        whole = split == "dev" and self._kind is not TaskKind.CAUSAL_TAGGING
        return RegisteredMetrics(self._kind, "" if whole else split)

    def _score(self, model: Model, examples: Examples, registered: RegisteredMetrics) -> Score:
        total = Score()
        for rows in split_examples(examples, self._scored_at_once):
            _, outputs, targets = self._answers(model, rows)
            outputs = outputs.float()
            registered.update(outputs, targets)
            loss = float(self._losses(outputs, targets).double().sum())
            total += Score(loss=loss, count=targets.numel())
            if self._kind is TaskKind.REGRESSION:
                continue
            right = (outputs.argmax(-1) == targets).cpu()
            asked = (rows.targets != IGNORED).nonzero()[:, 0]  # the row of each scored target
            sequences = len(asked.unique())
            exact = sequences - len(asked[~right].unique())
            total += Score(right=int(right.sum()), exact=exact, sequences=sequences)
        return total

    def causal_view(self) -> CausalView | None:
        """Return the longest dev or test example for testing causality.

        Return None if the task is not causal. If the names of all test sets are numbers, only the set of the
        largest number is drawn, which has the longest inputs. After a bottleneck every output may depend on
        the whole input, but the body's output for a token may not.
        """
        if not self.interface.causal:
            return None
        assert self.interface.vocab is not None, "a tagging task has a vocabulary"
        return CausalView(
            inputs=self._longest_inputs.to(self.device),
            first=0,
            symbols=self.interface.vocab,
            outputs=self._causal_outputs,
        )

    def _causal_outputs(self, model: nn.Module, rows: Tensor) -> Tensor:
        assert isinstance(model, Model)
        return model.codes(rows) if self.interface.bottleneck else model(rows)

    @cached_property
    def _longest_inputs(self) -> Tensor:
        names = list(self._task.test_sets())
        if all(name.isdecimal() for name in names):  # lengths, or other sizes
            names = sorted(names, key=int)[-1:]
        tested = (draw_test_set(self._task, name) for name in names)
        return max(map(_longest, (self._dev, *tested)), key=len)


def _longest(examples: Examples) -> Tensor:
    if examples.lengths is None:
        return examples.inputs[0]
    longest = int(examples.lengths.argmax())
    return examples.inputs[longest, : int(examples.lengths[longest])]


class AlgorithmicObjective(FreshObjective):
    """Objective of algorithmic tasks, with batches of one length each, and tests after the last epoch."""

    def __init__(self, settings: TrialSettings, device: torch.device, folder: Path) -> None:
        super().__init__(settings, device, folder)
        assert isinstance(settings.task, AlgorithmicSettings), f"{settings.task.name} has no lengths"
        self._settings, self._task = settings.task, get_task(settings.task.name)

    def loss(self, model: Model, part: int, parts: int) -> Tensor:
        inputs, targets, _ = self.batch if parts == 1 else micro_batch(self.batch, part, parts)
        inputs, targets = on_device(inputs, self.device), on_device(targets, self.device)
        logits, targets = model(inputs).flatten(0, 1), targets.flatten()  # (batch * tokens, vocab)
        self._show(inputs, logits, targets)
        loss = functional.cross_entropy(logits, targets)
        return loss if parts == 1 else loss * micro_batch_weight(len(self.batch.inputs), part, parts)

    def evaluate(self, model: Model, *, last: bool) -> Metrics:
        """Return the metrics after an epoch. After the last epoch, include metrics at each test length."""
        measured = self._evaluate_epoch(model)
        return measured | self._test(model) if last and self._settings.test_lengths else measured

    def test_batches(self) -> Iterator[Examples]:
        """Yield the sequences of each test length or, without test lengths, the dev sequences."""
        lengths = self._settings.test_lengths
        batches = [draw_test_batch(self._task, self._settings, length) for length in lengths]
        for batch in batches or self._dev_batches():
            yield from split_examples(batch, self.settings.train.batch_size)

    def _draw(self, count: int, length: int, generator: torch.Generator) -> Examples:
        return self._task.batch(count, length, generator, vocab=self.interface.vocab)

    def _shape(self, length: int) -> StepShape:
        tokens = self._task.spec.sequence_length(length)
        return StepShape(sequences=self.settings.train.batch_size, tokens=tokens)

    @abstractmethod
    def _dev_batches(self) -> Sequence[Examples]:
        """Return the dev sequences as batches, each with one length."""

    @abstractmethod
    def _evaluate_epoch(self, model: Model) -> Metrics:
        """Return the metrics that are computed after every epoch, on the dev sequences."""

    def _test(self, model: Model) -> Metrics:
        """Return test metrics for each test length, and their means, in which all lengths weigh the same."""
        found: Metrics = {}
        means: dict[str, list[float]] = {}
        for length in self._settings.test_lengths:
            batch = draw_test_batch(self._task, self._settings, length)
            for name, value in self._score(model, [batch]).metrics("test").items():
                found[f"{name}[{length}]"] = value
                means.setdefault(name, []).append(value)
        return {name: fmean(values) for name, values in means.items()} | found

    def _score(
        self,
        model: Model,
        batches: Iterable[Examples],
        registered: RegisteredMetrics | None = None,
        at_once: int | None = None,
    ) -> Score:
        at_once = at_once or max(1, self._scored_at_once // self.settings.train.accumulate)
        total = Score()
        for inputs, targets, _ in (rows for batch in batches for rows in split_examples(batch, at_once)):
            wanted, logits = targets.to(self.device), model(inputs.to(self.device)).float()
            flat = logits.flatten(0, 1), wanted.flatten()  # (batch * tokens, vocab), (batch * tokens,)
            if registered is not None:
                registered.update(*flat)
            right = logits.argmax(-1) == wanted
            total += Score(
                # sums over many symbols lose digits in single precision
                loss=float(functional.cross_entropy(*flat, reduction="none").double().sum()),
                count=targets.numel(),
                right=int(right.sum()),
                exact=int(right.all(-1).sum()),
                sequences=len(targets),
            )
        return total


class GrowingLengthObjective(AlgorithmicObjective):
    """Objective whose sequence length grows when the accuracy on fresh sequences is high enough.

    [train] `curriculum` says how accurate the model must be, and where the length ends.
    """

    def __init__(self, settings: TrialSettings, device: torch.device, folder: Path) -> None:
        super().__init__(settings, device, folder)
        assert settings.train.curriculum is not None, "this task has a fixed length without a curriculum"
        # a generator of its own, so that evaluations do not change the training batches
        self._fresh = torch.Generator().manual_seed(derive_seed(settings.seed, "evaluation"))
        self._curriculum = settings.train.curriculum
        self._length, self._passed = self._curriculum.start, 0  # passed: the last learnt length

    @property
    def step_shape(self) -> StepShape:
        return self._shape(self._length)

    def state(self) -> dict[str, Any]:
        curriculum = {"length": self._length, "passed": self._passed}
        return {**super().state(), "fresh": self._fresh.get_state(), "curriculum": curriculum}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._fresh.set_state(state["fresh"].cpu())
        self._length, self._passed = state["curriculum"]["length"], state["curriculum"]["passed"]

    def _draw_batch(self) -> Examples:
        return self._draw(self.settings.train.batch_size, self._length, self._data)

    def _evaluate_epoch(self, model: Model) -> Metrics:
        length, end, registered = self._length, self._curriculum.end, RegisteredMetrics(TaskKind.TAGGING)
        # by default a whole training batch is scored at once, even if steps divide it into parts
        at_once = self._scored_at_once if self._settings.dev_examples is None else None
        accuracy = self._score(model, self._dev_batches(), registered, at_once).accuracy
        if accuracy >= self._curriculum.grow_at:
            self._passed, longer = length, length + self._task.spec.length_step
            self._length = longer if end is None or longer <= end else length
        return {
            "accuracy": accuracy,
            "length": float(length),  # at which the accuracy was measured
            "max_length": float(self._passed),
            **registered.compute(),
        }

    def _dev_batches(self) -> Sequence[Examples]:
        count = self._settings.dev_examples or self.settings.train.batch_size
        return [self._draw(count, self._length, self._fresh)]


class DrawnLengthObjective(AlgorithmicObjective):
    """Objective that draws each batch's length from [train] `lengths`; fixed dev sequences cover all."""

    def __init__(self, settings: TrialSettings, device: torch.device, folder: Path) -> None:
        super().__init__(settings, device, folder)
        assert settings.train.lengths is not None, "train.lengths is set"
        self._lengths = self._task.spec.lengths(*settings.train.lengths)
        self._drawn = Counter[int]()

    @property
    def step_shape(self) -> StepShape:
        return self._shape(self._lengths[-1])

    def epoch_shapes(self, steps: int) -> Mapping[StepShape, int]:
        return {self._shape(length): count for length, count in self._drawn.items()}

    def state(self) -> dict[str, Any]:
        return {**super().state(), "drawn": dict(self._drawn)}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._drawn = Counter(state["drawn"])

    def _draw_batch(self) -> Examples:
        length = self._lengths[int(torch.randint(len(self._lengths), (), generator=self._data))]
        self._drawn[length] += 1
        return self._draw(self.settings.train.batch_size, length, self._data)

    def _evaluate_epoch(self, model: Model) -> Metrics:
        registered = RegisteredMetrics(TaskKind.TAGGING)
        score = self._score(model, self._dev, registered)
        # `epoch_shapes` counts the lengths of the current epoch only
        self._drawn.clear()
        return score.metrics("dev") | registered.compute()

    def _dev_batches(self) -> Sequence[Examples]:
        return self._dev

    @cached_property
    def _dev(self) -> tuple[Examples, ...]:
        return draw_dev_batches(
            self._task,
            self._lengths,
            count=self._settings.dev_examples or DEV_SEQUENCES,
            vocab=self.interface.vocab,
            seed=derive_seed(self.settings.seed, "evaluation"),
        )
