"""Cohorts of a grid: their sizes and total times, with simulated clocks."""

import heapq
from types import SimpleNamespace

import numpy as np
import pytest

from activemem import load_study
from activemem.engine.run.cohorts import COHORT_S, SCHEDULING_S, GridCohorts, expected_work

from ...quick_cases import one_in
from ...study_texts import study_text


def jobs(seconds, expected=None):
    """Return tasks with these true and expected durations."""
    expected = seconds if expected is None else expected
    return [
        SimpleNamespace(trial=SimpleNamespace(id=str(place), settings=known), seconds=took, turn=0)
        for place, (took, known) in enumerate(zip(seconds, expected, strict=True))
    ]


def makespan(tasks, workers, speed=3.0):
    """Return the time until all workers have ended, each requesting a cohort when idle."""
    now = driver = 0.0
    source = GridCohorts(tasks, work=lambda trial: speed * trial.settings, clock=lambda: now)
    idle, running, sizes = workers, [], []
    while True:
        while idle and (cohort := source.next_cohort(workers)) is not None:
            driver = max(driver, now) + SCHEDULING_S
            name, taken = cohort
            heapq.heappush(running, (driver + sum(job.seconds for job in taken), name))
            sizes.append(len(taken))
            idle -= 1
        if not running:
            return now, sizes
        now, name = heapq.heappop(running)
        source.cohort_ended(name, completed=True)
        idle += 1


def ideal(tasks, workers):
    times = [job.seconds for job in tasks]
    return max(sum(times) / workers, max(times))


def one_by_one(tasks, workers):
    """Return the time until all workers have ended if tasks start one by one, the longest expected first."""
    free, driver = [0.0] * workers, 0.0
    for job in sorted(tasks, key=lambda job: -job.trial.settings):
        driver = max(driver, heapq.heappop(free)) + SCHEDULING_S
        heapq.heappush(free, driver + job.seconds)
    return max(free)


def alike_on_paper(count):
    """Return tasks with equal expectations, which take one, four or forty seconds."""
    mixed = np.repeat([1.0, 4.0, 40.0], count // 3)
    alike = np.full(count, 10.0)
    shuffled = np.random.default_rng(0).permutation(mixed)
    return {"shortest first": jobs(mixed, alike), "mixed": jobs(shuffled, alike)}


def grids(count=4608):
    rng = np.random.default_rng(0)
    cheap_first = np.repeat([1.0, 4.0, 40.0], count // 3)
    return {
        "alike": jobs(np.full(count, 20.0)),
        "a cheap factor first": jobs(cheap_first),
        "less than was expected": jobs(cheap_first * rng.uniform(0.1, 1.0, count), cheap_first),
    }


@pytest.mark.parametrize("workers", [8, 256])
@pytest.mark.parametrize("kind", one_in(2, grids(3)))
def test_workers_end_nearly_together(kind, workers):
    tasks = grids()[kind]
    took, sizes = makespan(tasks, workers)
    assert sum(sizes) == len(tasks)
    assert took <= 1.15 * ideal(tasks, workers)


@pytest.mark.parametrize(("workers", "count"), [(8, 144), (64, 432), (8, 1536), (256, 1536)])
@pytest.mark.parametrize("kind", [*alike_on_paper(3), *grids(3)])
def test_cohorts_of_few_trials_take_little_longer_than_each_alone(kind, count, workers):
    tasks = {**alike_on_paper(count), **grids(count)}[kind]
    took, sizes = makespan(tasks, workers)
    assert sum(sizes) == len(tasks)
    assert took <= 1.1 * one_by_one(tasks, workers)


def test_short_trials_are_handed_out_many_at_once_and_one_worker_has_them_in_order():
    now = 0.0
    tasks = jobs(np.full(3000, 0.3))
    source = GridCohorts(tasks, work=lambda trial: trial.settings, clock=lambda: now)
    sizes, order = [], []
    while (cohort := source.next_cohort()) is not None:
        name, taken = cohort
        now += sum(job.seconds for job in taken)
        source.cohort_ended(name, completed=True)
        sizes.append(len(taken))
        order += taken
    assert sizes[:3] == [1, 33, 33]
    assert max(sizes) * 0.3 <= COHORT_S
    assert order == tasks


def test_the_expected_time_of_a_trial_grows_with_its_model_and_its_steps():
    def work(**train):
        text = study_text(model={"d_model": 256}, train={"batch_size": 64, **train})
        return expected_work(load_study(text + '[factors]\nmixer = ["sa"]\ntask = ["not"]\n').trials[0])

    assert work(epochs=4) > 2 * work(epochs=2) > 0
