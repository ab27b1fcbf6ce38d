"""Labelled data of one's own: losses and scores of batches equal those of single sequences."""

import json

import pytest
import torch
from torch.nn import functional

from activemem import load_study
from activemem.engine.core.models import build_model
from activemem.engine.corpora.files import keep_files
from activemem.engine.objectives.build import build_objective
from activemem.engine.objectives.labelled import ClassificationScore
from activemem.studies.catalog.tasks import IGNORED

from ...study_texts import study_text

WORDS = ("one", "two", "three", "four", "five")
KINDS = {
    "sequence_classification": ("conv(k=3) >> last", {"tokens": "words", "pieces": 300}),
    "sequence_regression": ("conv(k=3) >> mean_pool", {"tokens": "characters"}),
    "sequence_regression of large numbers": ("conv(k=3) >> mean_pool", {"tokens": "characters"}),
    "token_classification": ("sa(heads=1) + conv(k=2)", {}),
}
LONGEST = 5


def label_of(kind, words):
    if kind == "token_classification":
        return [None if word == "five" else len(word) for word in words]
    if kind == "sequence_classification":
        return len(words) % 3
    return (10**15 if "large" in kind else 100) + 10 * len(words) + 1


@pytest.fixture(params=KINDS)
def trial(request, tmp_path):
    """Return the settings of a trial, its data folder, and the rows of its file."""
    kind, (recipe, keys) = request.param, KINDS[request.param]
    sequences = [[WORDS[(start + step) % 5] for step in range(1 + start % 9)] for start in range(90)]
    rows = [
        {
            "text": words if kind == "token_classification" else " ".join(words),
            "label": label_of(kind, words),
            "part": ("train", "dev", "test")[number % 3],
        }
        for number, words in enumerate(sequences)
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    corpus = {"path": "rows.jsonl", "split": "part"}
    text = study_text(
        model={"recipe": recipe, "dropout": 0.0},
        task={"name": kind.split()[0], "corpus": corpus, "longest": LONGEST, **keys},
        train={"curriculum": None, "batch_size": 6},
    )
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    study = load_study(tmp_path / "study.toml")
    keep_files(study.own_corpus.files, tmp_path / "data" / "own")
    return study.trials[0].settings, tmp_path / "data", rows


def made(trial):
    settings, folder, _ = trial
    objective = build_objective(settings, torch.device("cpu"), folder)
    generator = torch.Generator().manual_seed(1)
    return objective, build_model(settings, generator).eval()


def numbers_of(objective, row):
    """Return a row's sequence as numbers."""
    text = row["text"] if isinstance(row["text"], str) else " ".join(row["text"])
    return objective._corpus.vocabulary.encode(text)


def answers_one_by_one(objective, model, rows):
    """Return the model's output for each label, and the labels, one sequence at a time."""
    corpus = objective._corpus
    outputs, labels = [], []
    for row in rows:
        found = model(torch.tensor([numbers_of(objective, row)[:LONGEST]]))
        wanted = row["label"] if isinstance(row["label"], list) else [row["label"]]
        outputs.append(found[0] if corpus.train.of_tokens else found)
        labels += wanted[:LONGEST]
    scored = [label is not None for label in labels]
    outputs, labels = [torch.cat(outputs)[scored]], [label for label in labels if label is not None]
    numbers = labels if not corpus.classes else [corpus.classes.index(str(label)) for label in labels]
    return torch.cat(outputs), torch.tensor(numbers)


@torch.no_grad()
def test_scores_are_those_of_the_sequences_one_by_one(trial):
    objective, model = made(trial)
    measured = objective.evaluate(model, last=True)
    assert {name.partition("_")[0] for name in measured} == {"dev", "test"}
    for split in ("dev", "test"):
        rows = [row for row in trial[2] if row["part"] == split]
        outputs, labels = answers_one_by_one(objective, model, rows)
        if objective._corpus.classes:
            score = ClassificationScore(len(objective._corpus.classes))
            score.update(outputs, labels)
            expected = score.compute()
        else:
            train = torch.tensor([row["label"] for row in trial[2] if row["part"] == "train"]).double()
            outputs, labels = outputs.double(), labels.double()
            mean, deviation = train.mean(), train.std(unbiased=False)
            numbers = outputs[:, 0] * deviation + mean
            expected = {
                "loss": float(functional.mse_loss(outputs[:, 0], (labels - mean) / deviation)),
                "mae": float((numbers - labels).abs().mean()),
                "r2": 1 - float(functional.mse_loss(numbers, labels) / labels.var(unbiased=False)),
            }
        found = {name.partition("_")[2]: value for name, value in measured.items() if name.startswith(split)}
        assert found == pytest.approx(expected, rel=1e-4)


def test_a_batch_in_parts_has_the_loss_of_the_whole_and_each_pass_has_every_row(trial):
    whole, model = made(trial)
    parts, _ = made(trial)
    seen = 0
    for _ in range(5):
        whole.begin_batch(1)
        parts.begin_batch(2)
        loss = whole.loss(model, 0, 1)
        halves = sum(parts.loss(model, part, 2) for part in range(2)) / 2
        torch.testing.assert_close(halves, loss)
        seen += int(whole.batch.lengths.sum())
    rows = [row for row in trial[2] if row["part"] == "train"]
    assert seen == sum(min(LONGEST, len(numbers_of(whole, row))) for row in rows)
    assert whole.step_shape.sequences == 6


def test_a_state_continues_with_the_next_batch(trial):
    first, model = made(trial)
    for _ in range(7):  # into the second pass
        first.begin_batch(1)
    second, _ = made(trial)
    second.restore(json.loads(json.dumps(first.state())))
    first.begin_batch(1)
    second.begin_batch(1)
    torch.testing.assert_close(second.loss(model, 0, 1), first.loss(model, 0, 1), rtol=0, atol=0)
    assert second.step_shape == first.step_shape


def test_a_number_that_equals_the_mark_of_unscored_labels_is_scored(trial):
    objective, model = made(trial)
    if objective._corpus.classes:
        return
    objective.begin_batch(1)
    objective.batch.targets[0] = IGNORED
    _, outputs, labels = objective._answers(model, objective.batch)
    torch.testing.assert_close(objective.loss(model, 0, 1), objective._losses(outputs, labels).mean())


def test_a_batch_without_a_scored_label_has_a_loss_of_zero(trial):
    objective, model = made(trial)
    if not objective._corpus.train.of_tokens:
        return
    objective.begin_batch(1)
    objective.batch.targets.fill_(IGNORED)
    loss = objective.loss(model, 0, 1)
    loss.backward()
    assert loss.item() == 0.0


@torch.no_grad()
def test_the_predictions_of_the_test_split_are_written_in_its_order(trial):
    objective, model = made(trial)
    assert objective.outputs() is None
    objective.evaluate(model, last=False)
    assert objective.outputs() is None
    objective.evaluate(model, last=True)
    state, (again, _) = objective.state(), made(trial)
    again.restore(state)
    written, classes = again.outputs(), objective._corpus.classes
    rows = [row for row in trial[2] if row["part"] == "test"]
    for row, source, reference, output in zip(
        rows, written.sources, written.references, written.outputs, strict=True
    ):
        text = row["text"] if isinstance(row["text"], str) else " ".join(row["text"])
        assert source == text
        labels = row["label"][:LONGEST] if isinstance(row["label"], list) else [row["label"]]
        assert reference == " ".join("_" if label is None else str(label) for label in labels)
        found, _ = answers_one_by_one(objective, model, [row])
        if classes:
            predicted = iter(classes[number] for number in found.argmax(-1).tolist())
            assert output == " ".join("_" if label is None else next(predicted) for label in labels)
        else:
            mean, deviation = objective._corpus.scale
            assert float(output) == pytest.approx(float(found) * deviation + mean, abs=1e-3 * deviation)
