"""Early stopping: number of epochs, supported metrics, and equality after interruptions."""

import polars as pl
import pytest
import torch

from activemem import StudyError, load_study, run_study
from activemem.engine import Machine
from activemem.engine.trial.evaluation import Stopping
from activemem.engine.trial.outcome import Job
from activemem.engine.trial.resumable_attempt import Attempt
from activemem.engine.trial.training import Training
from activemem.storage import Store
from activemem.studies.catalog.metrics import metric_family
from activemem.studies.schema.reported_metrics import epoch_metrics, final_metrics
from activemem.studies.schema.settings import TrialSettings

from ...study_texts import study_text

CPU = torch.device("cpu")
TRAIN = {"optimizer": {"name": "adam", "lr": 0.01}, "batch_size": 4, "epochs": 2, "steps_per_epoch": 2}
TEXT = study_text(
    model={"recipe": "ff(8)"},
    task={"name": "reverse", "test_lengths": [9], "test_examples": 4, "dev_examples": 10},
    train={
        "epochs": 30,
        "curriculum": None,
        "lengths": [1, 6],
        "early_stopping": {"metric": "dev_loss", "patience": 2, "min_change": 0.02},
    },
)


def patience(values, metric="dev_loss", **keys):
    """Return the count of epochs without improvement after each value, until training stops."""
    keys = {"metric": metric, **keys}
    train = TrialSettings.model_validate(
        {
            "model": {"recipe": "ff(8)", "d_model": 4},
            "task": {"name": "reverse"},
            "train": {**TRAIN, "lengths": [1, 4], "epochs": 100, "early_stopping": keys},
        }
    ).train
    state, waited = Stopping.begin(train), []
    for value in values:
        state = state.after_steps(0.0).after_evaluation({metric: value}, torch.nn.Linear(1, 1))
        waited.append(state.state()["patience"]["waited"])
        assert state.is_impatient == (waited[-1] >= keys["patience"])
        if state.is_impatient:
            break
    return waited


def test_epochs_without_a_better_value_in_a_row_end_a_training():
    assert patience([3.0, 2.0, 2.0, 2.5, 1.9, 1.95, 1.9, 1.0], patience=2) == [0, 0, 1, 2]
    assert patience([3.0, 2.0, 2.1, 1.9, 1.9, 1.9, 1.0], patience=2) == [0, 0, 1, 0, 1, 2]
    assert patience([0.5, 0.6, 0.55, 0.7, 0.7, 0.6], "dev_accuracy", patience=2) == [0, 0, 1, 0, 1, 2]
    assert patience([3.0, 2.95, 2.85, 2.7], patience=1, min_change=0.1) == [0, 1]
    assert patience([3.0, 2.95, 2.85, 2.7], patience=2, min_change=0.1) == [0, 1, 0, 0]
    assert patience([float("nan"), 3.0, float("nan"), 2.0], patience=3) == [1, 0, 1, 0]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Return a store with the completed study."""
    folder = tmp_path_factory.mktemp("stopped")
    run_study(load_study(TEXT), Store(folder), local=True)
    return Store(folder)


def course(store, trial):
    metrics = store.metrics([trial]).filter(pl.col("name") != "tokens_per_s")
    return metrics.select("epoch", "name", "value").rows()


def test_a_trial_ends_done_in_the_epoch_of_its_last_patience_and_is_tested_there(store):
    trial = load_study(TEXT).trials[0].id
    row = store.trials().row(0, named=True)
    losses = [value for _, name, value in course(store, trial) if name == "dev_loss"]
    best = [min(losses[: place + 1]) for place in range(len(losses))]
    assert (row["status"], row["epochs"], row["steps"]) == ("done", len(losses), 2 * len(losses))
    assert 3 <= len(losses) < 30
    assert best[-3] - min(losses[-2:]) <= 0.02  # the last two brought no better one
    assert [epoch for epoch, name, _ in course(store, trial) if name == "test_accuracy[9]"] == [len(losses)]


def test_a_trial_that_is_broken_off_after_any_epoch_stops_in_the_same_one(store, tmp_path):
    study = load_study(TEXT)
    other = Store(tmp_path)
    job = Job(trial=study.trials[0], attempt=0, run="run")
    while other.trials().is_empty():
        attempt, epochs = Attempt(job, other, CPU), 0
        while not attempt.ended and epochs < 1:
            epochs += attempt.advance().kind == "epoch"
        attempt.release()
    trial = study.trials[0].id
    assert course(other, trial) == course(store, trial)
    columns = ("status", "epochs", "steps", "flops")
    assert other.trials().select(columns).rows() == store.trials().select(columns).rows()


FEW = {"dev_examples": 10, "test_examples": 10}
KINDS = {
    "grown": ({"name": "reverse"}, "ff(8)", {"curriculum": {"start": 5}}),
    "drawn": (
        {"name": "reverse", "dev_examples": 4, "test_lengths": (5, 6), "test_examples": 4},
        "ff(8)",
        {"lengths": (1, 4), "accumulate": 2, "measure": ("gradient_norm",)},
    ),
    "generated": ({"name": "parity", "lengths": (2, 4), "test_lengths": (4,), **FEW}, "conv(k=3)", {}),
    "numbers": ({"name": "recall_addition"}, "mean_pool", {}),
    "pairs": ({"name": "reverse_copy"}, "seq2seq(gru, gru)", {}),
    "stream": ({"name": "language_model", "corpus": "paradise-lost", "context": 16}, "conv(k=3)", {}),
    "lines": (
        {"name": "language_model", "corpus": "paradise-lost", "batching": "lines", "dev_tokens": 500},
        "conv(k=3)",
        {},
    ),
}


@pytest.mark.usefixtures("short_pairs")
@pytest.mark.parametrize("kind", KINDS)
def test_metrics_that_are_listed_for_each_epoch_and_for_the_end_are_measured(kind, tmp_path):
    task, recipe, train = KINDS[kind]
    settings = TrialSettings.model_validate(
        {"model": {"recipe": recipe, "d_model": 8}, "task": task, "train": {**TRAIN, **train}}
    )
    training = Training.begin(settings, CPU, tmp_path)
    assert set(training.advance()) - {"tokens_per_s"} == set(epoch_metrics(settings))
    if kind != "pairs":  # decoding all of their test split takes minutes
        last = {metric_family(name) for name in training.advance()}
        assert last == set(final_metrics(settings)) - {"solved_epochs"}  # no task is solved so soon


@pytest.mark.parametrize(
    "stopping",
    [
        {"metric": "dev_los", "patience": 2},
        {"metric": "test_loss", "patience": 2},
        {"metric": "dev_loss"},
        {"metric": "dev_loss", "patience": 0},
    ],
)
def test_impossible_early_stopping_is_reported(stopping, golden):
    text = TEXT.replace('{ metric = "dev_loss", patience = 2, min_change = 0.02 }', _toml(stopping))
    with pytest.raises(StudyError) as caught:
        load_study(text)
    golden(" ".join(str(caught.value).split()))


def _toml(table):
    return "{ " + ", ".join(f"{key} = {value!r}" for key, value in table.items()) + " }"


def test_metrics_that_are_listed_for_classes_are_measured(tmp_path):
    rows = "".join(f"number {number} of many,{('odd', 'even')[number % 2]}\n" for number in range(200))
    (tmp_path / "my.csv").write_text(f"text,label\n{rows}", encoding="utf-8")
    study = tmp_path / "study.toml"
    study.write_text(
        study_text(
            model={"recipe": "conv(k=3) >> mean_pool"},
            task={"name": "sequence_classification", "corpus": {"path": "my.csv"}, "tokens": "words"},
            train={"curriculum": None, "early_stopping": {"metric": "dev_macro_f1", "patience": 1}},
        ),
        encoding="utf-8",
    )
    store = Store(tmp_path / "results")
    loaded = load_study(study)
    run_study(loaded, store, local=True, machine=Machine(data=tmp_path / "data"))
    first = {name for epoch, name, _ in course(store, loaded.trials[0].id) if epoch == 1}
    assert first == set(epoch_metrics(loaded.trials[0].settings))
    (metrics,) = store.trials()["metrics"].to_list()
    measured = {metric_family(each["name"]) for each in metrics}
    assert measured == set(final_metrics(loaded.trials[0].settings))


def test_no_metric_of_test_sequences_ends_a_training():
    text = study_text(
        model={"recipe": "sa >> mean_pool"},
        task={"name": "recall_addition"},
        train={"early_stopping": {"metric": "loss", "patience": 1}, "curriculum": None},
    )
    assert load_study(text).trials
    with pytest.raises(StudyError, match=r"not measured on its test sequences, and .* better \(loss\)"):
        load_study(text, 'train.early_stopping.metric="accuracy"')
