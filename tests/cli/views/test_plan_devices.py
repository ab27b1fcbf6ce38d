"""The training device in plans, on machines with a simulated GPU."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from activemem.engine import Machine
from activemem.engine.core.resources import Gpu
from activemem.engine.run import planning
from activemem.studies.planning.memory_estimates import StepMemory

STEP = StepMemory(
    tokens=40,
    sequences=32,
    equal_parts=True,
    weights=4 * 10**9,
    activations=4 * 10**9,
)
PLAN = SimpleNamespace(
    memory=("sa", STEP),
    models=[
        SimpleNamespace(label=label, memory=memory)
        for label, memory in (("conv", 10**9), ("gru", 6 * 10**9), ("sa", STEP.total))
    ],
)


@pytest.fixture(name="told")
def _told(monkeypatch):
    """Return a function for the plan's device text, with H100s and steps of 8 GB."""

    def told(gpus, *, count=1, cpus=64, address=None, size=80 * 10**9):
        gpu = Gpu(name="NVIDIA H100", bytes=size)
        monkeypatch.setattr(planning, "gpu_here", lambda: (gpu, count))
        monkeypatch.setattr(planning, "cpus_here", lambda: cpus)
        return planning.describe_device(PLAN, Machine(gpus=gpus, cpus=2, address=address))

    return told


def test_by_default_a_trial_has_a_whole_gpu(told, golden):
    golden(told("auto"))
    golden(told("auto", count=4))


@pytest.mark.parametrize(
    "asked",
    [
        (0.25, {}),
        (0.25, {"cpus": 4}),
        (0.25, {"cpus": 7, "count": 4}),
        (0.02, {"cpus": 97}),
        (0.0208, {"cpus": 192}),
        ("auto", {"cpus": 1}),
        (0.25, {"size": 18 * 10**9}),
        ("auto", {"size": 8 * 10**9}),
        ("auto", {"size": 5 * 10**9}),
    ],
)
def test_memory_cpus_or_the_setting_limit_the_trials_on_a_gpu(told, asked, golden):
    gpus, machine = asked
    golden(told(gpus, **machine))


def test_the_page_on_many_runs_shows_the_text_of_a_plan(told):
    page = Path(__file__).parents[3].joinpath("docs", "how-to", "many-runs.md").read_text(encoding="utf-8")
    assert told(0.125) in " ".join(page.split())


def test_a_trial_that_has_the_whole_gpu_shares_it_with_none(told):
    assert told(1).endswith("1 such trial at once; 8 fit into 80.0 GB")


def test_a_gpu_that_cuda_fails_with_trains_nothing(monkeypatch, golden):
    monkeypatch.setattr(planning, "gpu_here", lambda: None)
    monkeypatch.setattr(planning, "gpu_fault", lambda: "Error 805")
    monkeypatch.setattr(planning, "memory_here", lambda: 10**11)
    told = "nowhere: torch finds no GPU here, because CUDA fails: Error 805"
    assert planning.describe_device(PLAN, Machine()) == told
    golden(planning.describe_device(PLAN, Machine(gpus=0)))


def test_a_step_that_the_memory_of_a_machine_cannot_hold_is_reported(monkeypatch, golden):
    monkeypatch.setattr(planning, "gpu_here", lambda: None)
    monkeypatch.setattr(planning, "gpu_fault", lambda: None)
    monkeypatch.setattr(planning, "memory_here", lambda: 8 * 10**9)
    golden(planning.describe_device(PLAN, Machine()))
    monkeypatch.setattr(planning, "memory_here", lambda: 3 * 10**9)
    golden(planning.describe_device(PLAN, Machine()))
