"""Objectives for the user's own labelled sequences: classification and regression.

A label is a class of a sequence, a class of a token, or a number for a sequence.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ...blocks import Model
from ...storage import WrittenOutputs
from ...studies.catalog.tasks import IGNORED, Examples, LabelledSettings
from ...studies.schema.settings import TrialSettings
from ..core.process import derive_seed
from ..data.labelled_sequences import (
    LabelledSplit,
    evaluation_order,
    format_number,
    iter_labelled_batches,
    iter_labelled_eval,
    open_labelled,
)
from .base import (
    Answers,
    Metrics,
    RegisteredMetrics,
    StreamedObjective,
    micro_batch,
    on_device,
    scored_on_device,
)

BINS = 15
"""The number of confidence bins of the expected calibration error (Guo et al. 2017, section 2)."""


class ClassificationScore:
    """The loss, accuracy, macro F1 and calibration of predictions, updated batch by batch."""

    def __init__(self, classes: int) -> None:
        self._confusion = torch.zeros(classes, classes, dtype=torch.int64)  # (true, predicted)
        self._loss = 0.0
        self._bins = torch.zeros(3, BINS, dtype=torch.float64)  # confidence, correct labels, counts

    def update(self, logits: Tensor, labels: Tensor) -> None:
        """Add predictions: the logits (examples, classes) and the gold class of each example (examples,)."""
        logits, labels = logits.float().cpu(), labels.cpu()
        self._loss += float(functional.cross_entropy(logits, labels, reduction="sum").double())
        confidence, predicted = logits.softmax(-1).double().max(-1)
        count = len(self._confusion)
        pairs = torch.bincount(labels * count + predicted, minlength=count * count)
        self._confusion += pairs.view(count, count)
        places = (confidence * BINS).ceil().long().clamp(1, BINS) - 1  # the upper end of a bin belongs to it
        found = torch.stack([confidence, (predicted == labels).double(), torch.ones_like(confidence)])
        self._bins.index_add_(1, places, found)

    def compute(self) -> dict[str, float]:
        """Return the mean loss in nats, accuracy, macro F1, and the expected calibration error.

        Macro F1 is the mean over classes that occur among the labels or the predictions.
        """
        total, right = int(self._confusion.sum()), self._confusion.diagonal()
        # F1 of a class is 2 × correct / (true + predicted)
        named = self._confusion.sum(0) + self._confusion.sum(1)
        f1 = (2 * right / named)[named > 0]
        confidence, correct, _ = self._bins
        return {
            "loss": self._loss / total,
            "accuracy": int(right.sum()) / total,
            "macro_f1": float(f1.mean()),
            "ece": float((confidence - correct).abs().sum()) / total,
        }


class LabelledObjective(StreamedObjective[Model, Examples]):
    """Base class of objectives with labelled sequences."""

    def __init__(self, settings: TrialSettings, device: torch.device, folder: Path) -> None:
        super().__init__(settings, device, folder)
        assert isinstance(settings.task, LabelledSettings), f"{settings.task.name} has no labels"
        self._task, self._corpus = settings.task, open_labelled(settings.task, folder)
        self._predicted: list[float] = []  # for the test labels in their order, after the last epoch

    def loss(self, model: Model, part: int, parts: int) -> Tensor:
        sequences, outputs, labels = self._answers(model, micro_batch(self.batch, part, parts))
        self._show(sequences, *self._measured(outputs, labels))
        whole = self.batch.targets
        scored = len(whole) if whole.dim() == 1 else int((whole != IGNORED).sum())
        # a batch may have no scored label
        return self._losses(outputs, labels).sum() * parts / max(1, scored)

    def evaluate(self, model: Model, *, last: bool) -> Metrics:
        """Return the metrics of the dev split and, after the last epoch, also of the test split."""
        measured, _ = self._scores(model, self._corpus.dev, "dev")
        if not last:
            return measured
        tested, predicted = self._scores(model, self._corpus.test, "test")
        self._predicted = predicted.tolist()
        return measured | tested

    def outputs(self) -> WrittenOutputs | None:
        """Return the predicted and the true label of each test sequence, or the labels of its tokens.

        Tokens without a label have `_` in both.
        """
        if not self._predicted:
            return None
        test, predicted = self._corpus.test, iter(self._predicted)
        lines: dict[int, tuple[str, str, str]] = {}
        rows = iter_labelled_eval(test, batch_size=1, longest=self._task.longest)
        for number, row in zip(evaluation_order(test), rows, strict=True):
            labels = row.targets.flatten().tolist()
            guesses = [label if test.of_tokens and label == IGNORED else next(predicted) for label in labels]
            text = self._corpus.vocabulary.decode(test.sequences.padded_lines([number])[0][0].tolist())
            lines[number] = text, self._text_of(labels), self._text_of(guesses)
        sources, references, outputs = zip(*(lines[number] for number in sorted(lines)), strict=True)
        return WrittenOutputs(sources=sources, references=references, outputs=outputs)

    def state(self) -> dict[str, Any]:
        return {**super().state(), "predicted": self._predicted}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._predicted = state.get("predicted", [])  # checkpoints of earlier versions lack it

    def test_batches(self) -> Iterator[Examples]:
        size = self.settings.train.batch_size
        return iter_labelled_eval(self._corpus.test, batch_size=size, longest=self._task.longest)

    def symbols(self) -> dict[str, Any]:
        return {"source": self._corpus.vocabulary.to_dict(), **self._output_description()}

    def _iter_batches(self, position: int) -> Iterator[Examples]:
        return iter_labelled_batches(
            self._corpus.train,
            batch_size=self.settings.train.batch_size,
            longest=self._task.longest,
            seed=derive_seed(self.settings.seed, "data"),
            position=position,
        )

    def _symbols_of(self, batch: Examples) -> int:
        return batch.inputs.numel()

    def _answers(self, model: Model, drawn: Examples) -> Answers:
        assert drawn.lengths is not None, "labelled sequences have lengths"
        sequences, lengths = on_device(drawn.inputs, self.device), on_device(drawn.lengths, self.device)
        if drawn.targets.dim() == 1:
            return Answers(sequences, model(sequences, lengths), on_device(drawn.targets, self.device))
        labels, places = scored_on_device(drawn.targets, drawn.targets != IGNORED, self.device)
        return Answers(sequences, model.outputs_at(sequences, places, lengths), labels)

    def _iter_answers(self, model: Model, split: LabelledSplit) -> Iterator[tuple[Tensor, Tensor]]:
        size = self._scored_at_once
        for drawn in iter_labelled_eval(split, batch_size=size, longest=self._task.longest):
            _, outputs, labels = self._answers(model, drawn)
            yield outputs.float(), labels

    @abstractmethod
    def _output_description(self) -> dict[str, Any]:
        """Return plain values that explain the model's outputs, such as the names of the classes."""

    def _measured(self, outputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        return outputs, labels

    @abstractmethod
    def _losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of the model's output for each label."""

    @abstractmethod
    def _text_of(self, labels: Sequence[float]) -> str:
        """Return the labels of a sequence as text."""

    @abstractmethod
    def _scores(self, model: Model, split: LabelledSplit, name: str) -> tuple[Metrics, Tensor]:
        """Return the metrics of a split, with names that begin with `name`, and the predicted labels."""


class ClassificationObjective(LabelledObjective):
    """Objective of classification: each sequence, or each token, has one class."""

    def _output_description(self) -> dict[str, Any]:
        return {"classes": list(self._corpus.classes)}

    def _losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        return functional.cross_entropy(outputs, labels, reduction="none")

    def _text_of(self, labels: Sequence[float]) -> str:
        classes = self._corpus.classes
        return " ".join("_" if label == IGNORED else classes[int(label)] for label in labels)

    def _scores(self, model: Model, split: LabelledSplit, name: str) -> tuple[Metrics, Tensor]:
        score, predicted = ClassificationScore(len(self._corpus.classes)), list[Tensor]()
        registered = RegisteredMetrics(self._task.spec.kind, name)
        for logits, labels in self._iter_answers(model, split):
            score.update(logits, labels)
            registered.update(logits, labels)
            predicted.append(logits.argmax(-1).cpu())
        measured = {f"{name}_{metric}": value for metric, value in score.compute().items()}
        return measured | registered.compute(), torch.cat(predicted)


class SequenceRegressionObjective(LabelledObjective):
    """Objective of regression, with one number as the label of a sequence.

    Labels are standardised by the mean and deviation of the training labels.
    """

    def _output_description(self) -> dict[str, Any]:
        mean, deviation = self._corpus.scale
        return {"mean": mean, "deviation": deviation}

    def _measured(self, outputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        mean, deviation = self._corpus.scale
        return (outputs.squeeze(-1).double() * deviation + mean).float(), labels.float()

    def _losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        mean, deviation = self._corpus.scale
        targets = ((labels - mean) / deviation).float()
        return functional.mse_loss(outputs.squeeze(-1).float(), targets, reduction="none")

    def _text_of(self, labels: Sequence[float]) -> str:
        _, deviation = self._corpus.scale
        return " ".join(format_number(label, deviation) for label in labels)

    def _scores(self, model: Model, split: LabelledSplit, name: str) -> tuple[Metrics, Tensor]:
        """Return the loss, the mean absolute error in the labels' unit, and R², unless labels are equal."""
        mean, deviation = self._corpus.scale
        registered = RegisteredMetrics(self._task.spec.kind, "" if name == "dev" else name)
        answers = [(outputs.cpu(), labels.cpu()) for outputs, labels in self._iter_answers(model, split)]
        outputs, labels = (torch.cat(each) for each in zip(*answers, strict=True))
        loss = self._losses(outputs, labels).double().mean()
        numbers = outputs.squeeze(-1).double() * deviation + mean
        registered.update(*self._measured(outputs, labels))
        measured = {f"{name}_loss": float(loss), f"{name}_mae": float((numbers - labels).abs().mean())}
        variance = float(labels.var(unbiased=False))
        if variance > 0:
            measured[f"{name}_r2"] = 1 - float((numbers - labels).square().mean()) / variance
        return measured | registered.compute(), numbers
