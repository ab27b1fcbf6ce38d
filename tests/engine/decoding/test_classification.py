"""Classification metrics against their definitions, computed example by example."""

import pytest
import torch
from torch.nn import functional

from activemem.engine.objectives.labelled import BINS, ClassificationScore


def plainly(logits, labels):
    """Return loss, accuracy, macro F1 and calibration error by their definitions."""
    probabilities = logits.softmax(-1).double()
    confidences, answers = (each.tolist() for each in probabilities.max(-1))
    right = [answer == label for answer, label in zip(answers, labels.tolist(), strict=True)]
    scores = []
    for label in sorted({*labels.tolist(), *answers}):
        hits = sum(ok for ok, answer in zip(right, answers, strict=True) if answer == label)
        scores.append(2 * hits / (answers.count(label) + labels.tolist().count(label)))
    error = 0.0
    for place in range(BINS):
        inside = [
            (confidence, ok)
            for confidence, ok in zip(confidences, right, strict=True)
            if place / BINS < confidence <= (place + 1) / BINS
        ]
        if inside:
            mean, share = (sum(each) / len(inside) for each in zip(*inside, strict=True))
            error += len(inside) / len(labels) * abs(mean - share)
    return {
        "loss": float(functional.cross_entropy(logits, labels)),
        "accuracy": sum(right) / len(right),
        "macro_f1": sum(scores) / len(scores),
        "ece": error,
    }


@pytest.mark.parametrize("classes", [2, 7])
def test_scores_in_batches_are_those_of_the_definitions(classes):
    generator = torch.Generator().manual_seed(classes)
    logits = 3 * torch.randn(101, classes, generator=generator)
    labels = torch.randint(
        max(classes - 2, 2), (101,), generator=generator
    )  # of seven classes, two are not right
    score = ClassificationScore(classes)
    for rows in (slice(0, 40), slice(40, 41), slice(41, None)):
        score.update(logits[rows], labels[rows])
    assert score.compute() == pytest.approx(plainly(logits, labels), rel=1e-6)


def test_a_sure_and_right_model_has_no_error_and_a_sure_and_wrong_one_all():
    right, wrong = ClassificationScore(2), ClassificationScore(2)
    logits = torch.tensor([[99.0, 0.0], [0.0, 99.0]])
    right.update(logits, torch.tensor([0, 1]))
    wrong.update(logits, torch.tensor([1, 0]))
    assert right.compute() == pytest.approx({"loss": 0, "accuracy": 1, "macro_f1": 1, "ece": 0})
    assert wrong.compute() == pytest.approx({"loss": 99, "accuracy": 0, "macro_f1": 0, "ece": 1})
