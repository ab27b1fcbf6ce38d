"""The best epoch is tested and saved as if training had ended there, despite interruptions."""

import io
import math

import pytest
import torch

from activemem import StudyError, load_study
from activemem.engine.trial.evaluation import BestEpoch
from activemem.engine.trial.training import Training
from activemem.studies.schema.settings import TrialSettings

from ...study_texts import study_text

CPU = torch.device("cpu")
EPOCHS, STEPS = 7, 3
TASK = {"name": "reverse", "test_lengths": [9], "test_examples": 8, "dev_examples": 10}


def settings(task=TASK, **train):
    """Return a trial whose loss rises and falls because of a large step size."""
    table = {
        "optimizer": {"name": "adam", "lr": 0.2},
        "batch_size": 4,
        "epochs": EPOCHS,
        "steps_per_epoch": STEPS,
        "lengths": [1, 6],
    }
    model = {"recipe": "conv(k=3) >> ff(8)", "d_model": 8}
    return TrialSettings.model_validate({"model": model, "task": task, "train": {**table, **train}})


def trained(of, tmp_path):
    """Return a finished training, and the metrics of its epochs without speeds."""
    training, course = Training.begin(of, CPU, tmp_path), []
    while not training.finished:
        course.append({name: value for name, value in training.advance().items() if name != "tokens_per_s"})
    return training, course


@pytest.mark.parametrize("average", [None, 0.7])
def test_the_best_epoch_is_tested_and_kept_as_if_the_training_had_ended_there(tmp_path, average):
    training, course = trained(settings(keep="best", average=average), tmp_path)
    _, last = trained(settings(average=average), tmp_path)
    losses = [each["dev_loss"] for each in last]
    best = losses.index(min(losses)) + 1
    assert 1 <= best < EPOCHS
    assert course[:-1] == last[:-1]
    shorter, ended = trained(settings(average=average, epochs=best), tmp_path)
    assert course[-1]["best_epoch"] == best
    assert course[-1]["loss"] == last[-1]["loss"]
    kept = {name: value for name, value in course[-1].items() if name not in ("loss", "best_epoch")}
    assert kept == {name: value for name, value in ended[-1].items() if name != "loss"}
    weights = shorter.weights()
    assert all(torch.equal(weight, weights[name]) for name, weight in training.weights().items())


def test_early_stopping_says_by_which_metric_and_when(tmp_path):
    stopping = {"metric": "dev_accuracy", "patience": 2}
    _, course = trained(settings(keep="best", early_stopping=stopping), tmp_path)
    found = [each["dev_accuracy"] for each in course[:-1]]
    assert (len(course), course[-1]["best_epoch"]) == (len(found) + 1, found.index(max(found)) + 1)
    assert len(course) - course[-1]["best_epoch"] == 2


@pytest.mark.parametrize("average", [None, 0.7])
def test_a_trial_that_is_broken_off_anywhere_keeps_the_same_epoch(tmp_path, average):
    of = settings(keep="best", average=average)
    expected, course = trained(of, tmp_path)

    class LeftError(Exception):
        """Raised to interrupt a training between two steps."""

    def leave():
        raise LeftError

    training, found = Training.begin(of, CPU, tmp_path), []
    while not training.finished:
        for between_steps in (leave, lambda: None):
            saved = io.BytesIO()
            torch.save(training.state(), saved)
            saved.seek(0)
            training = Training.begin(of, CPU, tmp_path)
            training.restore(torch.load(saved, weights_only=True))
            try:
                found.append(training.advance(between_steps))
            except LeftError:
                assert training.can_be_saved
    assert [each | {"tokens_per_s": 0} for each in found] == [each | {"tokens_per_s": 0} for each in course]
    weights = expected.weights()
    assert all(torch.equal(weight, weights[name]) for name, weight in training.weights().items())


def test_a_nan_is_never_the_best_and_the_first_of_equal_epochs_is():
    model, best, epochs = torch.nn.Linear(1, 1), BestEpoch(metric="dev_loss"), []
    for epoch, value in enumerate([math.nan, math.inf, 2.0, 2.0, math.nan, 3.0, 1.0], start=1):
        best = best.after(epoch, {"dev_loss": value}, model)
        epochs.append(best.epoch)
    assert epochs == [0, 2, 3, 3, 3, 3, 7]


def test_the_default_is_the_last_epoch():
    assert settings() == settings(keep="last")


@pytest.mark.parametrize(
    "train",
    [
        {"curriculum": {"start": 5}},
        {"curriculum": None, "lengths": [1, 4], "early_stopping": {"metric": "loss", "patience": 1}},
    ],
)
def test_a_task_without_a_dev_split_has_no_best_epoch(train, golden):
    text = study_text(model={"recipe": "ff(8)"}, task={"name": "sort"}, train={"keep": "best", **train})
    with pytest.raises(StudyError) as caught:
        load_study(text)
    golden(" ".join(str(caught.value).split()))
