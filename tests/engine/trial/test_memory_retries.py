"""A trial that runs out of memory is retried alone, then with accumulation, before it fails."""

import pytest
import torch

from activemem.blocks.core.block import StreamState, split_streams
from activemem.engine.trial.failures import OomRetries, free_memory, is_out_of_memory, may_be_out_of_memory
from activemem.engine.trial.outcome import Job
from activemem.engine.trial.resumable_attempt import Attempt
from activemem.engine.trial.training import Training
from activemem.plugins import PluginError, plugin_errors
from activemem.storage import Store
from activemem.studies import Trial

CPU = torch.device("cpu")


@pytest.fixture
def job(settings):
    def make(**train):
        found = settings(**train)
        plain = found.model_copy(update={"model": found.model.model_copy(update={"dropout": 0.0})})
        trial = Trial(study="tiny", levels={"mixer": "conv", "seed": 0}, settings=plain)
        return Job(trial=trial, attempt=0, run="run")

    return make


def outcome(folder, job, kind=Training):
    """Return the events of a trial, and its row."""
    store = Store(folder)
    attempt, events = Attempt(job, store, CPU, make_training=kind.begin), []
    while not attempt.ended:
        events.append(attempt.advance())
    return events, store.trials().to_dicts()[0]


def room_for(rows, tries):
    """Return a training that runs out of memory in its second epoch with more rows at once."""

    class Small(Training):
        def advance(self, between_steps=lambda: None):
            train = self.settings.train
            tries.append(train.accumulate)

            def step():
                if self.epoch == 1 and train.batch_size // train.accumulate > rows:
                    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.00 GiB.")
                between_steps()

            return super().advance(step)

    return Small


def test_a_trial_continues_in_parts_from_its_last_epoch_and_its_row_says_so(tmp_path, job):
    plain = job(batch_size=8, optimizer={"name": "sgd", "lr": 0.1})
    _, whole = outcome(tmp_path / "whole", plain)
    tries = []
    events, row = outcome(tmp_path / "parts", plain, room_for(2, tries))
    assert tries == [1, 1, 1, 2, 4, 4, 4]  # an epoch, the second one whole, alone, in halves, in quarters …
    assert [event.kind for event in events] == ["started", *["epoch"] * 4, "ended"]
    assert row["device"] == f"{whole['device']}, batches in 4 parts"
    assert (row["status"], row["trial"], row["settings"]) == ("done", whole["trial"], whole["settings"])
    ours, theirs = ({each["name"]: each["value"] for each in one["metrics"]} for one in (row, whole))
    assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-4)


@pytest.mark.parametrize(
    ("error", "is_it"),
    [
        (torch.OutOfMemoryError("CUDA out of memory."), True),
        (torch.AcceleratorError("CUDA error: out of memory"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("cuFFT error: CUFFT_ALLOC_FAILED"), True),
        (RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"), True),
        (RuntimeError("NCCL error: unhandled cuda error. Cuda failure 2 'out of memory'"), True),
        (MemoryError(), True),
        (RuntimeError("CUDA error: device-side assert triggered"), False),
        (ValueError("out of memory"), False),
    ],
    ids=str,
)
def test_exceptions_that_mean_that_memory_ran_out(error, is_it):
    assert is_out_of_memory(error) is may_be_out_of_memory(error) is is_it


NO_HANDLE = "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"
NO_TELLER = (
    'NVML_SUCCESS == r INTERNAL ASSERT FAILED at "/pytorch/c10/cuda/CUDACachingAllocator.cpp":1154, please '
    "report a bug to PyTorch. "
)
NO_ENGINE = "GET was unable to find an engine to execute this computation"


@pytest.mark.parametrize(
    "told", [NO_HANDLE, "cuDNN error: CUDNN_STATUS_NOT_INITIALIZED", NO_ENGINE, NO_TELLER]
)
def test_ambiguous_memory_errors_are_retried_with_less_and_reported_unchanged(tmp_path, job, told):
    tries = []

    class Short(Training):
        def advance(self, between_steps=lambda: None):
            tries.append(self.settings.train.accumulate)
            raise RuntimeError(told)

    assert not is_out_of_memory(RuntimeError(told))
    _, row = outcome(tmp_path, job(batch_size=2), Short)
    assert tries == [1, 1, 2]
    assert row["reason"].splitlines()[0] == f"RuntimeError at epoch 1, batches in 2 parts: {told}"


@pytest.mark.parametrize(
    "told",
    [NO_HANDLE, NO_ENGINE, NO_TELLER, "CUDNN_STATUS_ALLOCATION_FAILED", "fell over"],
)
def test_memory_errors_in_the_code_of_a_plug_in_are_retried_as_well(told):
    def step():
        raise RuntimeError(told)

    with pytest.raises((RuntimeError, PluginError)) as caught, plugin_errors("optimizer", "mine", step):
        step()
    assert may_be_out_of_memory(caught.value) is (told != "fell over")


def test_memory_of_a_lost_gpu_is_left_to_whoever_computes_next(monkeypatch):
    asked = []

    def empty_cache():
        asked.append("it")
        raise torch.AcceleratorError("CUDA error: device-side assert triggered")

    for name, value in {"is_available": lambda: True, "is_initialized": lambda: True}.items():
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(torch.cuda, "empty_cache", empty_cache)
    free_memory()
    assert asked == ["it"]


def test_a_trial_that_was_short_of_memory_once_is_as_if_nothing_had_been(tmp_path, job):
    once = iter([True])

    class Unlucky(Training):
        def advance(self, between_steps=lambda: None):
            if next(once, False):
                raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
            return super().advance(between_steps)

    (_, row), (_, whole) = (outcome(tmp_path / kind.__name__, job(), kind) for kind in (Unlucky, Training))
    same = ("status", "reason", "device", "steps", "flops", "epochs")
    assert [row[name] for name in same] == [whole[name] for name in same]


@pytest.mark.heavy
def test_a_trial_fails_when_a_sequence_at_a_time_is_too_much(tmp_path, job, golden):
    tries = []
    events, row = outcome(tmp_path, job(batch_size=4), room_for(0, tries))
    assert tries == [1, 1, 1, 2, 4]
    assert events[-1].kind == "ended"
    golden(row["reason"].splitlines()[0])


def test_a_worker_that_resumes_a_trial_knows_its_memory_retries(tmp_path, job):
    settings = job(batch_size=12, accumulate=3).trial.settings
    tries = OomRetries(settings, tmp_path)
    assert tries.next() and tries.next()
    other = OomRetries(settings, tmp_path)
    other.read()
    assert (other.parts, other.settings.train.accumulate) == (6, 6)
    assert other.next()
    assert not other.next()  # 12 sequences in 12 parts


def test_the_past_of_a_text_is_kept_when_parts_change():
    rows = torch.arange(24.0).view(4, 3, 2)
    streams = [StreamState(3, (part, None)) for part in rows.chunk(2)]
    split = split_streams(streams, 4)
    assert [stream.past_length for stream in split] == [3] * 4
    first, nothing = zip(*(stream.block_states for stream in split), strict=True)
    assert [row.tolist() for row in first if row is not None] == [row.tolist() for row in rows.chunk(4)]
    assert nothing == (None,) * 4
    (together,) = split_streams(split, 1)
    assert together.block_states[0] is not None
    assert torch.equal(together.block_states[0], rows)
    assert split_streams([StreamState()], 2) == [StreamState(), StreamState()]
