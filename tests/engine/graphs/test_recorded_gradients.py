"""Steps whose gradients are recorded: the same numbers, few recordings, and none where they cannot be."""

import copy
import logging
from pathlib import Path

import pytest
import torch

from activemem.engine.graphs.cuda_capture import CudaCapture
from activemem.engine.graphs.graphable import GraphedTrainings
from activemem.engine.graphs.recorded_gradients import RecordedGradients
from activemem.engine.trial.training import Training
from activemem.studies.schema.settings import TrialSettings

CPU = torch.device("cpu")
NEEDS_A_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


class Recorder:
    """What a GPU does, on a CPU: work is done to be recorded, and again to be replayed."""

    def __init__(self):
        self.recorded = self.replayed = 0

    def __call__(self, work):
        self.recorded += 1
        with torch.random.fork_rng():
            work()

        def replay():
            self.replayed += 1
            work()

        return replay


def settings(recipe="2 * (sa(heads=2) >> ff(16))", dropout=0.1, **train):
    return TrialSettings.model_validate(
        {
            "model": {"recipe": recipe, "d_model": 8, "dropout": dropout},
            "task": {"name": "sort"},
            "train": {
                "optimizer": {"name": "adamw", "lr": 1e-2, "weight_decay": 0.1},
                "batch_size": 4,
                "epochs": 4,
                "steps_per_epoch": 6,
                "clip_norm": 0.5,
                **({} if "lengths" in train else {"curriculum": {"start": 3, "grow_at": 0.05}}),
                **train,
            },
        }
    )


def untimed(metrics):
    return {name: value for name, value in metrics.items() if name != "tokens_per_s"}


@pytest.mark.parametrize(
    "asked",
    [settings(), settings(lengths=[3, 5], average=0.9, measure=["gradient_norm"])],
    ids=["grows", "drawn"],
)
def test_recorded_steps_are_those_of_the_training_and_each_length_is_recorded_once(asked):
    recorder = Recorder()
    plain, found = Training(asked, CPU), GraphedTrainings(recorder)(asked, CPU, Path("data"))
    for _ in range(2):
        assert untimed(found.advance()) == untimed(plain.advance())
    for name, weight in plain.weights().items():
        assert torch.equal(found.weights()[name], weight)
    assert recorder.replayed == 12
    assert recorder.recorded == len(found.gradients) == (2 if asked.train.lengths is None else 3)


def test_a_training_goes_on_with_recordings_or_without_from_a_state_of_either():
    asked = settings()
    plain, found = Training(asked, CPU), GraphedTrainings(Recorder())(asked, CPU, Path("data"))
    plain.advance()
    state = copy.deepcopy(plain.state())
    found.advance()
    found.restore(copy.deepcopy(state))  # into tensors that recordings write
    expected = untimed(plain.advance())
    assert untimed(found.advance()) == expected
    other = Training(asked, CPU)
    other.restore(state)
    assert untimed(other.advance()) == expected


def test_of_too_many_recordings_that_goes_which_was_not_replayed_for_longest():
    asked, recorder = settings(lengths=[3, 8]), Recorder()
    plain, found = Training(asked, CPU), Training(asked, CPU)
    found.gradients = RecordedGradients(found.model, found.objective, recorder, most=2)
    assert untimed(found.advance()) == untimed(plain.advance())
    assert len(found.gradients) == 2 < recorder.recorded


def test_work_that_cannot_be_recorded_is_done_without_and_told_once(caplog):
    asked, tries = settings(), []

    def record(work):
        with torch.random.fork_rng():
            tries.append(work())
        raise RuntimeError("operation not permitted when stream is capturing\nand more")

    plain, found = Training(asked, CPU), GraphedTrainings(record)(asked, CPU, Path("data"))
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert untimed(found.advance()) == pytest.approx(untimed(plain.advance()), rel=1e-6)
    assert len(tries) == 1
    told = "steps are not recorded as graphs: operation not permitted when stream is capturing"
    assert [record.getMessage() for record in caplog.records] == [told]


def test_trainings_that_cannot_be_recorded_are_told_once_and_train_without(caplog):
    make = GraphedTrainings(Recorder())
    with caplog.at_level(logging.WARNING):
        for asked in [settings(accumulate=2)] * 2 + [settings("sa(span=8, adaptive=true)")]:
            assert make(asked, CPU, Path("data")).gradients is None
        assert GraphedTrainings()(settings(), CPU, Path("data")).gradients is None
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "the parts of a batch come one after the other ([train] accumulate)",
        "its model looks at its weights between steps",
        "there is no GPU",
    ]


@NEEDS_A_GPU
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_graph_of_a_gpu_computes_what_the_gpu_does(dropout):
    device = torch.device("cuda")
    asked = settings(dropout=dropout, lengths=[3, 5])
    plain, found = Training(asked, device), GraphedTrainings()(asked, device, Path("data"))
    for _ in range(3):
        assert untimed(found.advance()) == pytest.approx(untimed(plain.advance()), rel=1e-4)
    assert found.gradients.reason is None
    assert len(found.gradients) == 3


@NEEDS_A_GPU
def test_work_that_waits_for_the_gpu_cannot_be_recorded():
    number = torch.ones((), device="cuda")
    before = torch.cuda.get_rng_state()
    with pytest.raises(RuntimeError):
        CudaCapture(torch.device("cuda"))(lambda: number.item())
    assert torch.equal(torch.cuda.get_rng_state(), before)
