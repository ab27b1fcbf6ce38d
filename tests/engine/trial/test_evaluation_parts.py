"""An evaluation that exceeds the memory is computed in smaller batches with equal results."""

from dataclasses import replace

import pytest
import torch

from activemem.blocks import Embedding
from activemem.engine.trial.failures import in_smaller_parts
from activemem.engine.trial.training import Training
from activemem.studies.catalog.tasks import TASKS, DegradationProblem
from activemem.studies.schema.settings import TrialSettings

from ...quick_cases import one_in
from ...registry_entries import replace_entry
from ..text_factories import tiny_corpus

CPU = torch.device("cpu")
STREAM = {"name": "language_model", "corpus": "tiny", "context": 32, "dev_tokens": 1000}
TASKS_WITH_BATCHES = {
    "stream": ("conv(k=3)", STREAM),
    "lines": ("lstm", STREAM | {"batching": "lines"}),
    "parity": ("lstm", {"name": "parity", "lengths": [3, 9], "dev_examples": 16, "test_examples": 16}),
    "reverse": ("conv(k=3)", {"name": "reverse", "vocab": 5}),
    "pairs": ("seq2seq(lstm, lstm)", {"name": "reverse_copy"}),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    with tiny_corpus(folder):
        yield folder


@pytest.fixture
def make(monkeypatch, data):
    problem = TASKS["reverse_copy"]
    assert isinstance(problem, DegradationProblem)
    replace_entry(TASKS, "reverse_copy", replace(problem, sequences=80, test_sequences=12))

    def training(recipe, task):
        train = {"optimizer": {"name": "sgd", "lr": 0.01}, "batch_size": 8, "epochs": 2, "steps_per_epoch": 1}
        if task["name"] == "reverse":
            train["curriculum"] = {"start": 3}
        model = {"recipe": recipe, "d_model": 8}
        return Training.begin(
            TrialSettings.model_validate({"model": model, "task": task, "train": train}), CPU, data
        )

    return training


@pytest.mark.parametrize(("recipe", "task"), one_in(2, TASKS_WITH_BATCHES.values()), ids=TASKS_WITH_BATCHES)
def test_an_evaluation_has_as_much_of_a_batch_as_fits(make, recipe, task):
    whole, short = make(recipe, task), make(recipe, task)
    most = []

    def look(module, args):
        if not module.training and args[0].dtype == torch.int64:
            most.append(len(args[0]))
            if len(args[0]) > 2:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.00 GiB.")

    found = [module for module in short.model.modules() if isinstance(module, Embedding)]
    assert found
    for module in found:
        module.register_forward_pre_hook(look)
    for _ in range(2):
        expected, measured = whole.advance(), short.advance()
        assert measured.keys() == expected.keys()
        for name in expected.keys() - {"tokens_per_s"}:
            assert measured[name] == pytest.approx(expected[name], rel=1e-5), name
    assert most.count(8) <= 2 and most[-1] <= 2
    assert short.objective.evaluation_parts == 4
    assert [line.outputs for line in [short.objective.outputs()] if line] == [
        line.outputs for line in [whole.objective.outputs()] if line
    ]


def test_parts_are_doubled_until_a_batch_has_no_more():
    tried = []

    def compute(parts):
        tried.append(parts)
        raise torch.OutOfMemoryError("CUDA out of memory.")

    with pytest.raises(torch.OutOfMemoryError):
        in_smaller_parts(compute, 1, 12)
    assert tried == [1, 2, 4, 8]
    tried.clear()
    with pytest.raises(ValueError, match="another"):
        in_smaller_parts(lambda parts: tried.append(parts) or int("another"), 2, 12)
    assert tried == [2]
