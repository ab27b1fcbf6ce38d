"""Registered metrics get the scored data of each kind of objective, every token or sequence once."""

from dataclasses import replace

import pytest
import torch

from activemem import register_metric
from activemem.engine.trial.training import Training
from activemem.studies import METRICS
from activemem.studies.catalog.tasks import TASKS, DegradationProblem
from activemem.studies.schema.settings import TrialSettings

from ...registry_entries import replace_entry

LINES = {"name": "language_model", "corpus": "paradise-lost", "batching": "lines"}
STREAM = {"name": "language_model", "corpus": "paradise-lost", "dev_tokens": 2000}


class Mean:
    """A mean over all data of a function of both arguments."""

    def __init__(self, of):
        self.of, self.total, self.count = of, 0.0, 0

    def update(self, outputs, targets):
        assert outputs.shape[0] == targets.shape[0]
        assert targets.dim() == 1
        self.total += float(self.of(outputs, targets).double().sum())
        self.count += len(targets)

    def compute(self):
        return self.total / self.count


def chosen_nats(scores, symbols):
    return -scores.gather(1, symbols[:, None]).squeeze(1)


@pytest.fixture
def register():
    """Return a function that registers a metric during a test."""
    names = []

    def add(kind, of):
        register_metric("same", title="The same once more", kinds=[kind])(lambda: Mean(of))
        names.extend(name for name in METRICS if name.endswith("same"))

    yield add
    for name in names:
        METRICS.unregister(name)


def trained(task, recipe, **train):
    settings = {
        "model": {"recipe": recipe, "d_model": 8, "dropout": 0.0},
        "task": task,
        "train": {
            "optimizer": {"name": "adam", "lr": 0.01},
            "batch_size": 8,
            "epochs": 1,
            "steps_per_epoch": 1,
            **train,
        },
    }
    return TrialSettings.model_validate(settings)


def last_metrics(settings, folder):
    return Training.begin(settings, torch.device("cpu"), folder).advance()


def test_tagging_gives_logits_and_symbols(register, tmp_path):
    register("tagging", lambda outputs, targets: outputs.argmax(-1) == targets)
    settings = trained({"name": "reverse"}, "ff(8)", curriculum={"start": 5})
    found = last_metrics(settings, tmp_path)
    assert found["same"] == found["accuracy"]


def test_regression_gives_numbers(register, tmp_path):
    register("regression", lambda outputs, targets: (outputs - targets).abs() < 0.04)
    found = last_metrics(trained({"name": "recall_addition", "length": 50}, "mean_pool"), tmp_path)
    assert found["same"] == pytest.approx(found["accuracy"], abs=1e-9)


def test_transduction_gives_log_probabilities_of_both_splits(register, tmp_path, monkeypatch):
    problem = TASKS["reverse_copy"]
    assert isinstance(problem, DegradationProblem)
    few = replace(problem, sequences=400, test_sequences=40)
    replace_entry(TASKS, "reverse_copy", few)
    register("transduction", chosen_nats)
    found = last_metrics(trained({"name": "reverse_copy"}, "seq2seq(gru, gru)"), tmp_path)
    assert found["dev_same"] == pytest.approx(found["dev_loss"], rel=1e-6)
    assert found["test_same"] == pytest.approx(found["test_loss"], rel=1e-6)


@pytest.mark.parametrize("task", [STREAM, LINES], ids=["stream", "lines"])
def test_language_gives_the_nats_of_each_token(register, tmp_path, task):
    register("language", lambda outputs, targets: outputs)
    found = last_metrics(trained(task, "conv(k=3)"), tmp_path)
    assert found["dev_same"] == pytest.approx(found["dev_loss"], rel=1e-6)
    assert found["test_same"] == pytest.approx(found["test_loss"], rel=1e-6)


def test_a_metric_is_reported_by_its_kinds_alone(register, tmp_path):
    register("language", lambda outputs, targets: outputs)
    assert "same" not in METRICS
    assert METRICS["dev_same"].title == "The same once more on the dev split"
    assert METRICS.owner("dev_same") == "test_registered_metrics.py"
    found = last_metrics(trained({"name": "reverse"}, "ff(8)", curriculum={"start": 5}), tmp_path)
    assert set(found) == {"loss", "accuracy", "length", "max_length", "tokens_per_s"}
