"""Scores of predicted classes and of their probabilities."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

BINS = 15
"""Of confidence, for the expected calibration error (Guo et al. 2017, section 2)."""


class ClassificationScore:
    """The loss, accuracy, macro F1 and calibration of predictions, updated batch by batch."""

    def __init__(self, classes: int) -> None:
        self._confusion = torch.zeros(classes, classes, dtype=torch.int64)  # (true, predicted)
        self._loss = 0.0
        self._bins = torch.zeros(3, BINS, dtype=torch.float64)  # confidence, what is right, how many

    def update(self, logits: Tensor, labels: Tensor) -> None:
        """Take logits (examples, classes) and what is right (examples,) into account."""
        logits, labels = logits.float().cpu(), labels.cpu()
        self._loss += float(functional.cross_entropy(logits, labels, reduction="sum").double())
        confidence, predicted = logits.softmax(-1).double().max(-1)
        count = len(self._confusion)
        pairs = torch.bincount(labels * count + predicted, minlength=count * count)
        self._confusion += pairs.view(count, count)
        places = (confidence * BINS).ceil().long().clamp(1, BINS) - 1  # each bin has its upper end
        found = torch.stack([confidence, (predicted == labels).double(), torch.ones_like(confidence)])
        self._bins.index_add_(1, places, found)

    def compute(self) -> dict[str, float]:
        """Return the mean loss in nats, accuracy, macro F1, and the expected calibration error.

        Macro F1 is the mean over the classes that are right or named at least once.
        """
        total, right = int(self._confusion.sum()), self._confusion.diagonal()
        named = self._confusion.sum(0) + self._confusion.sum(1)  # true and predicted, twice what is right
        f1 = (2 * right / named)[named > 0]
        confidence, correct, _ = self._bins
        return {
            "loss": self._loss / total,
            "accuracy": int(right.sum()) / total,
            "macro_f1": float(f1.mean()),
            "ece": float((confidence - correct).abs().sum()) / total,
        }
