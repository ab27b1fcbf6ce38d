"""A plan says what bf16 would take of the time here, where the CPU has it and it gains."""

import pytest

from activemem import load_study
from activemem.engine import Machine
from activemem.engine.run import planning, step_times
from activemem.engine.run.planning import plan_study
from activemem.storage import Store

from ...study_texts import notes_on

CPU = Machine(gpus=0.0)
WIDE = ["model.d_model=128", "train.curriculum.start=20"]


@pytest.fixture(name="takes")
def _takes(tiny, tmp_path, monkeypatch):
    """Return a function for the plan's text on a CPU with bf16, where it takes this share of the time."""
    monkeypatch.setattr(planning, "cpu_has_bf16", lambda: True)
    monkeypatch.setattr(planning, "remember", lambda what, of, measure: measure())

    def takes(share, *changes, machine=CPU):
        monkeypatch.setattr(step_times, "measure_bf16", lambda *_: (1.0, share))
        return " ".join(str(plan_study(load_study(tiny, [*changes]), Store(tmp_path), machine)).split())

    return takes


def test_what_bf16_would_take_is_said_where_it_gains(takes):
    assert "bf16 would take 0.66 " in takes(0.66, *WIDE)
    assert "bf16" not in takes(0.95, *WIDE)


def test_a_study_that_sets_bf16_is_always_told(takes):
    assert "bf16 takes 0.66 " in takes(0.66, "train.precision=bf16", *WIDE)
    assert "faster" not in takes(1.0, "train.precision=bf16", *WIDE)
    told = takes(1.36, "train.precision=bf16", *WIDE)
    assert "bf16 takes 1.36 " in told
    assert '`precision = "float32"` is faster' in told


def test_steps_that_are_computed_in_float32_are_not_measured(takes):
    assert "bf16" not in takes(0.5)
    assert "computed in float32" in takes(0.5, "train.precision=bf16")


def test_large_steps_are_compared_at_a_shorter_length_with_their_whole_batch(tmp_path, monkeypatch, golden):
    compared = []
    monkeypatch.setattr(planning, "cpu_has_bf16", lambda: True)
    monkeypatch.setattr(planning, "remember", lambda what, of, measure: measure() if what == "bf16" else {})
    monkeypatch.setattr(step_times, "measure_bf16", lambda steps, _: compared.extend(steps) or (1.0, 0.66))
    study = load_study("algorithmic", ["train.precision=bf16"])
    (text,) = notes_on(plan_study(study, Store(tmp_path), CPU), "bf16")
    golden(text)
    sizes = [(each.train.curriculum.start, each.train.batch_size) for each in compared]
    assert sizes == [(30, 9), (5, 32)]  # the cheapest at its mean length, the most expensive at its first


def test_nothing_is_said_of_clusters(takes):
    assert "bf16" not in takes(0.5, "train.precision=bf16", *WIDE, machine=Machine(address="elsewhere:6379"))


def test_a_cpu_that_only_emulates_bf16_is_told_to_a_study_that_sets_it(takes, monkeypatch):
    monkeypatch.setattr(planning, "cpu_has_bf16", lambda: False)
    assert "bf16" not in takes(0.5, *WIDE)
    assert "only emulates it" in takes(0.5, "train.precision=bf16", *WIDE)


def test_both_precisions_are_measured_once_and_then_remembered(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(planning, "cpu_has_bf16", lambda: True)
    study = load_study(tiny, ["train.precision=bf16", *WIDE])
    (first,) = notes_on(plan_study(study, Store(tmp_path), CPU), "bf16")
    assert "of float32" in first
    monkeypatch.setattr(step_times, "measure_bf16", lambda *_: (1.0, 9.0))
    assert notes_on(plan_study(study, Store(tmp_path), CPU), "bf16") == [first]
