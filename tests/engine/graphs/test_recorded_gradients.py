"""Steps whose gradients are recorded: the same numbers, few recordings, and none where they cannot be."""

import copy
import logging
from gc import collect
from pathlib import Path
from weakref import ref

import pytest
import torch

from activemem.engine.graphs.cuda_capture import CudaCapture
from activemem.engine.graphs.graphable import GraphedTrainings, make_recordings
from activemem.engine.graphs.recorded_work import WORTH, BrokenRecordingError, RecordedWork, Recordings
from activemem.engine.trial.memory_retries import free_memory
from activemem.engine.trial.training import Training
from activemem.studies.schema.settings import TrialSettings

from .recorders import NormOfSome, Recorder, refuse

CPU = torch.device("cpu")
NEEDS_A_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


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


def recording(asked, record, most=64, device=CPU):
    """A training whose gradients are recorded so."""
    return GraphedTrainings(Recordings(record, most))(asked, device, Path("data"))


def drawing(asked):
    """The same settings of a task that draws its examples, from weights that dropout does not move."""
    train = asked.train.model_copy(update={"curriculum": None, "lengths": None})
    task = {"name": "mqar", "vocab": 32, "length": 16, "pairs": 3, "dev_examples": 20}
    given = asked.model_dump(mode="json") | {"train": train.model_dump(mode="json"), "task": task}
    return TrialSettings.model_validate(given)


def untimed(metrics):
    return {name: value for name, value in metrics.items() if name != "tokens_per_s"}


@pytest.mark.parametrize(
    "asked",
    [settings(), settings(lengths=[3, 5], average=0.9, measure=["gradient_norm"])],
    ids=["grows", "drawn"],
)
def test_recorded_steps_are_those_of_the_training_and_each_length_is_recorded(asked):
    recorder = Recorder()
    plain, found = Training(asked, CPU), recording(asked, recorder)
    for _ in range(2):
        assert untimed(found.advance()) == untimed(plain.advance())
    for name, weight in plain.weights().items():
        assert torch.equal(found.weights()[name], weight)
    assert recorder.replayed == 12
    grows = asked.train.lengths is None  # and no length comes again; drawn are 4, 3, then 5 and the others
    assert (recorder.recorded, len(found.gradients)) == ((2, 1) if grows else (5, 3))


def test_recorded_steps_of_a_task_that_draws_its_examples_are_those_of_the_training():
    recorder, asked = Recorder(), drawing(settings())
    plain, found = Training(asked, CPU), recording(asked, recorder)
    for _ in range(2):
        assert untimed(found.advance()) == untimed(plain.advance())
    for name, weight in plain.weights().items():
        assert torch.equal(found.weights()[name], weight)
    assert (recorder.recorded, recorder.replayed) == (1, 12)


def test_a_longer_batch_than_all_before_takes_the_place_of_what_would_be_held_beside_it():
    recorder = Recorder()
    steps = RecordedWork(recordings := Recordings(recorder))
    held, sums = list[int](), torch.zeros(())
    for length in (3, 2, 3, 5, 4, 3, 5, 6):
        assert steps.do([torch.ones(length)], lambda batch: lambda: sums.add_(batch[0].sum()))
        held.append(len(recordings))
    assert held == [1, 2, 2, 1, 2, 3, 3, 1]
    assert recorder.recorded == 6  # that of 3 twice
    other = RecordedWork(recordings)  # of the same pool
    assert other.do([torch.ones(7)], lambda batch: lambda: None)
    assert (len(steps), len(other), len(recordings)) == (0, 1, 1)
    free_memory()
    assert steps.do([torch.ones(1)], lambda batch: lambda: None)
    assert other.do([torch.ones(2)], lambda batch: lambda: None)
    assert (len(steps), len(other)) == (0, 1)


def test_a_training_that_has_ended_leaves_no_measure_of_what_is_a_longer_batch():
    recordings = Recordings(Recorder())
    for _ in range(2):
        steps = RecordedWork(recordings)
        for length in (3, 4, 9):
            assert steps.do([torch.ones(length)], lambda batch: lambda: None)
            assert len(recordings) == 1
        del steps


class RunningNorm(torch.nn.BatchNorm1d):
    """A norm of one's own that keeps means of all batches."""

    def forward(self, x):
        return super().forward(x.mT).mT


@pytest.mark.parametrize("record", [Recorder(), refuse], ids=["recorded", "refused"])
def test_what_a_pass_changes_is_changed_once_a_step_whether_it_is_recorded_or_not(record):
    plain, found = Training(settings(), CPU), recording(settings(), record)
    for training in (plain, found):
        training.model.norm = RunningNorm(8, affine=False)
        training.take_step(), training.take_step()
    assert found.model.norm.num_batches_tracked == 2
    assert found.model.norm.running_mean.equal(plain.model.norm.running_mean)


@pytest.mark.parametrize("lengths", [{3, 5}, {4}], ids=["later", "first"])
def test_weights_that_have_gradients_at_some_lengths_alone_are_trained_without_recordings(lengths, caplog):
    asked, recorder = settings(lengths=[3, 5]), Recorder()
    plain, found = Training(asked, CPU), recording(asked, recorder)
    for training in (plain, found):
        training.model.norm = NormOfSome(training.model.norm, lengths)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert untimed(found.advance()) == pytest.approx(untimed(plain.advance()), rel=1e-6)
    for mine, other in zip(found.model.parameters(), plain.model.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-6)
    assert (recorder.recorded, len(found.gradients)) == (1, 0)  # of length 4, which is drawn first
    told = "steps are not recorded as graphs: which weights have gradients depends on the length of a batch"
    assert [record.getMessage() for record in caplog.records] == [told]


def test_a_training_goes_on_with_recordings_or_without_from_a_state_of_either():
    asked = settings()
    plain, found = Training(asked, CPU), recording(asked, Recorder())
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
    plain, found = Training(asked, CPU), recording(asked, recorder, most=2)
    assert untimed(found.advance()) == untimed(plain.advance())
    assert len(found.gradients) == 2 < recorder.recorded


@pytest.mark.parametrize(("each", "told"), [(WORTH + 1, None), (WORTH, "CUDA out of memory.")])
def test_where_memory_is_short_recordings_that_were_worth_it_give_way_to_others(each, told):
    recorder = Recorder()

    def record(work, generators=()):
        if len(recordings) == 2:
            raise torch.OutOfMemoryError("CUDA out of memory.\nand more")
        return recorder(work, generators)

    recordings, sums = Recordings(record), torch.zeros(())
    steps = RecordedWork(recordings)
    for length in range(5, 0, -1):
        for _ in range(each):
            if not steps.do([torch.ones(length)], lambda batch: lambda: sums.add_(batch[0].sum())):
                sums.add_(length)
    assert steps.reason == told
    assert (len(recordings), recorder.recorded) == ((0, 2) if told else (1, 5))
    assert sums == each * sum(range(1, 6)) + (9 if told else 15)  # once more where it is recorded


def test_what_is_recorded_is_given_back_before_a_trial_is_tried_with_less_memory():
    asked, recorder = settings(lengths=[3, 5]), Recorder()
    plain, found = Training(asked, CPU), recording(asked, recorder)
    for free in (free_memory, lambda: None):
        assert untimed(found.advance()) == untimed(plain.advance())
        free()
    assert len(found.gradients) == 3
    assert recorder.recorded == 8  # 4, 3, 5, 4; and 4, 5, 4, 3 again


def test_trainings_of_a_worker_share_what_is_kept_and_give_it_back_as_they_end():
    asked, recorder = settings(lengths=[5, 5]), Recorder()
    recordings = Recordings(recorder, most=2)
    make = GraphedTrainings(recordings)
    first, second, third = (make(asked, CPU, Path("data")) for _ in range(3))
    for training in (first, second, third, second):
        training.take_step()
    assert [len(each.gradients) for each in (first, second, third)] == [0, 1, 1]
    assert recorder.recorded == 3
    gone = ref(second.gradients)
    del second, training
    collect()  # what stands in for a recording refers to what it records
    assert gone() is None and len(recordings) == 1
    first.take_step()
    assert [len(each.gradients) for each in (first, third)] == [1, 1]


def test_work_that_cannot_be_recorded_is_done_without_and_told_once(caplog):
    asked = settings()
    recordings = Recordings(refuse)
    plain = Training(asked, CPU)
    found, other = (GraphedTrainings(recordings)(asked, CPU, Path("data")) for _ in range(2))
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            expected = untimed(plain.advance())
            for each in (found, other):
                assert untimed(each.advance()) == pytest.approx(expected, rel=1e-6)
    assert found.gradients.reason == "operation not permitted when stream is capturing"
    told = f"steps are not recorded as graphs: {found.gradients.reason}"
    assert [record.getMessage() for record in caplog.records] == [told]


def test_behind_a_recording_that_broke_nothing_is_recorded_or_replayed():
    asked, recorder = settings(lengths=[3, 5]), Recorder()

    def record(work, generators=()):
        if recorder.recorded == 2:
            raise BrokenRecordingError("out of memory")
        return recorder(work, generators)

    recordings = Recordings(record)
    make = GraphedTrainings(recordings)
    first, second = (make(asked, CPU, Path("data")) for _ in range(2))
    plain = Training(asked, CPU)
    first.take_step()
    expected = untimed(plain.advance())
    assert untimed(second.advance()) == pytest.approx(expected, rel=1e-6)
    assert untimed(first.advance()) == pytest.approx(expected, rel=1e-6)
    assert recordings.closed and len(recordings) == len(first.gradients) == len(second.gradients) == 0
    assert recorder.recorded == 2


def test_trainings_that_cannot_be_recorded_are_told_once_and_train_without(caplog):
    make = GraphedTrainings(Recordings(Recorder()))
    with caplog.at_level(logging.WARNING):
        for asked in [settings(accumulate=2)] * 2 + [settings("sa(span=8, adaptive=true)")]:
            assert make(asked, CPU, Path("data")).gradients is None
        assert make_recordings(CPU) is None
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
    plain, found = Training(asked, device), recording(asked, CudaCapture(device), device=device)
    for _ in range(3):
        assert untimed(found.advance()) == pytest.approx(untimed(plain.advance()), rel=1e-4)
    assert found.gradients.reason is None
    assert len(found.gradients) == 3


@NEEDS_A_GPU
def test_work_that_waits_for_the_gpu_cannot_be_recorded_and_others_can():
    device = torch.device("cuda")
    number, capture = torch.ones((), device=device), CudaCapture(device)
    own, stream = torch.Generator(device), torch.cuda.current_stream()
    before = torch.cuda.get_rng_state(), own.get_state()
    with pytest.raises(RuntimeError, match="synchronizing") as raised:
        capture(lambda: number.item(), [own])
    assert not isinstance(raised.value, BrokenRecordingError)
    assert torch.cuda.current_stream() == stream
    assert all(map(torch.equal, (torch.cuda.get_rng_state(), own.get_state()), before))
    replay = capture(lambda: number.add_(torch.rand((), device=device, generator=own)), [own])
    torch.manual_seed(0)
    assert torch.rand(2, device=device).isfinite().all()
    number.zero_()
    replay()
    own.set_state(before[1])
    assert torch.equal(number, torch.rand((), device=device, generator=own))


@NEEDS_A_GPU
def test_work_that_a_gpu_has_no_memory_to_record_is_done_without_and_others_are_recorded():
    device = torch.device("cuda")
    number, capture = torch.zeros((), device=device), CudaCapture(device)
    before = torch.cuda.get_rng_state()

    def work():
        number.add_(torch.rand((), device=device))
        if torch.cuda.is_current_stream_capturing():
            torch.empty(2**46, device=device)

    with pytest.raises(torch.OutOfMemoryError):
        capture(work)
    assert torch.equal(torch.cuda.get_rng_state(), before)
    replay = capture(lambda: number.fill_(3.0))
    number.zero_()
    replay()
    assert number.item() == 3.0
