"""Short grids train in the driver's process; others use Ray."""

from dataclasses import replace

import pytest

from activemem import load_study, run_study
from activemem.engine import Machine
from activemem.engine.run import driver, step_times
from activemem.engine.run.step_times import short_grid_seconds
from activemem.storage import Store
from activemem.studies.planning.time_estimates import SHORT_S, START_S, TimeEstimator

from ...study_texts import SEARCH_OF_RUNGS

HERE = Machine(gpus=0.0)


def seconds(text, store, machine=HERE):
    study = load_study(text)
    times = TimeEstimator(store.trials(), study.trials)
    return short_grid_seconds(study, study.trials, times, machine)


class Said:
    def __init__(self):
        self.here = []

    def __call__(self, event):
        self.here += [(len(event.trials), event.seconds)] if event.kind == "here" else []


def test_a_short_grid_trains_in_this_process_and_says_so_once(tiny, tmp_path):
    said = Said()
    small = load_study(tiny, ["factors.seed=[0]", "factors.task=['not']"])
    summary = run_study(small, Store(tmp_path), HERE, said)
    assert (summary.done, summary.left) == (2, 0)
    ((trials, told),) = said.here
    assert trials == 2 and 0 < told < SHORT_S
    run_study(small, Store(tmp_path), HERE, said)  # nothing is left to train
    assert len(said.here) == 1


def test_trials_that_continue_others_take_only_what_is_left_of_them(monkeypatch, tiny, tmp_path):
    one_seed, store, said = "factors.seed=[0]", Store(tmp_path), Said()
    monkeypatch.setattr(step_times, "_measure_step", lambda *_: 0.01)
    run_study(load_study(tiny, [one_seed]), store, HERE, said)
    more = load_study(tiny, [one_seed, "task.test_lengths=[3]"])
    times = TimeEstimator(store.trials(), more.trials)
    whole = sum(times.estimate(trial).seconds for trial in more.trials)
    run_study(more, store, HERE, said)
    assert said.here[1][1] < 0.9 * whole


@pytest.mark.parametrize("cores", [1, 2, 64])
def test_a_grid_of_some_minutes_trains_here_where_few_cores_would_share_it(
    monkeypatch, tiny, tmp_path, cores
):
    trials = [trial.settings.train for trial in load_study(tiny).trials]
    steps = sum(train.epochs * train.steps_per_epoch for train in trials)
    monkeypatch.setattr(step_times, "cpus_here", lambda: cores)
    monkeypatch.setattr(step_times, "_measure_step", lambda *_: 2 * SHORT_S / steps)
    found = seconds(tiny, Store(tmp_path))
    assert found == (None if cores == 64 else pytest.approx(2 * SHORT_S + START_S * len(trials)))


def test_a_grid_whose_steps_fail_is_estimated_by_a_slow_core(monkeypatch, tiny, tmp_path):
    def fail(*_):
        raise RuntimeError("no step")

    monkeypatch.setattr(step_times, "_measure_step", fail)
    assert 0 < seconds(tiny, Store(tmp_path)) < SHORT_S


def test_a_long_grid_a_search_a_cluster_and_a_limit_of_memory_are_for_ray(tiny, tmp_path):
    store = Store(tmp_path)
    assert seconds(tiny, store) < SHORT_S
    assert seconds(tiny.replace("epochs = 4", "epochs = 40000"), store) is None
    assert seconds(SEARCH_OF_RUNGS, store) is None
    assert seconds(tiny, store, replace(HERE, address="127.0.0.1:1")) is None


@pytest.mark.parametrize(("local", "reached"), [(False, ["ray"]), (True, ["here"]), (None, ["here"])])
def test_an_explicit_option_decides_where_a_grid_trains(tiny, tmp_path, monkeypatch, local, reached):
    from activemem.engine.run import ray_cluster

    places = []
    monkeypatch.setattr(ray_cluster, "train_on_ray", lambda *_, **__: places.append("ray") or [])
    monkeypatch.setattr(driver, "run_local", lambda *_, **__: places.append("here"))
    run_study(load_study(tiny), Store(tmp_path), HERE, local=local, max_trials=1)
    assert places == reached
