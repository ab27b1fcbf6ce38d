"""Conformance suite of samplers and schedulers, also for plug-ins.

    @pytest.mark.parametrize("check", SAMPLER_CHECKS)
    def test_my_sampler_conforms(check):
        check("my_sampler")

A check takes a name and raises AssertionError if the sampler or scheduler breaks its contract. The search has
all kinds of dimensions; one of them is active in only half of the points.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache

import optuna
from optuna.trial import TrialState

from ....studies.schema.search import contains
from ....studies.schema.search_settings import SearchSettings
from ....studies.study import Study, load_study
from .optuna_study import OptunaStudy, make_pruner, quiet_optuna
from .samplers.search_observations import Values
from .stored_points import PointEnd, SearchPoint

STUDY = """
[study]
name = "conformance"
title = "A search with dimensions of all kinds"
[model]
recipe = "{mixer} >> ff(8)"
d_model = 8
[task]
name = "sort"
[train]
optimizer = { name = "adam", lr = "{rate}" }
batch_size = 1
epochs = 1
steps_per_epoch = 1
lengths = [1, 8]
[search]
trials = 1
metric = "dev_accuracy"
direction = "max"
[search.space]
mixer = "choice(sa(heads={heads}), conv(k={kernel}) + conv(k={other}))"
kernel = "integer(2, 8, step=2)"
other = "integer(2, 64, log=true)"
heads = "integer(1, 4)"
rate = "real(1e-4, 1e-1, log=true)"
"""

_POINTS = 25
"""The number of points: enough for samplers with random initial points."""

_EPOCHS = 8


def points_are_within_the_space(name: str) -> None:
    """Check that each search point has exactly its active dimensions, each within its bounds."""
    for values, _ in _search(name, 0):
        with_heads = str(values["mixer"]).startswith("sa")
        taken = {"rate", "mixer", *(["heads"] if with_heads else ["kernel", "other"])}
        assert values.keys() == taken, f"expected values of {sorted(taken)}, got {sorted(values)}"
        for dimension, value in values.items():
            within = contains(_study().dimensions[dimension], value)
            assert within, f"expected a value of {dimension}, got {value}"


def points_are_not_all_one(name: str) -> None:
    """Check that a sampler does not propose the same search point each time."""
    own = [values for values, source in _search(name, 0) if source == name]  # others replace known points
    assert len(own) > 1, "every proposed point is the same"


def sampler_seed_decides(name: str) -> None:
    """Check that a sampler's points depend only on its seed. It must never use Python's generator."""
    random.seed(1)
    before = random.getstate()
    first = _search(name, 3)
    assert random.getstate() == before, "points were drawn from Python's own generator"
    random.seed(2)
    assert _search(name, 3) == first, "the same seed proposes different points"


def restarted_search_is_the_same(name: str) -> None:
    """Check that a restarted search proposes the same points."""
    expected = [values for values, _ in _search(name, 0)]
    for stopped in range(1, _POINTS):
        again = OptunaStudy(_study(name))
        for values in expected[:stopped]:
            again.tell(SearchPoint(values, ()), _end(values), None)
        found = propose(again, stopped)[0].values
        assert found == expected[stopped], f"a search restarted after {stopped} points proposes {found}"


def failed_points_are_survived(name: str) -> None:
    """Check that a sampler proposes further points after failed and pruned ones."""
    asked = OptunaStudy(_study(name))
    for place in range(_POINTS):
        state = (TrialState.FAIL, TrialState.PRUNED, TrialState.COMPLETE)[place % 3]
        point, trial, _ = propose(asked, place)
        asked.tell(point, PointEnd(state, 1, () if state == TrialState.FAIL else (0.5,)), trial)


SAMPLER_CHECKS: tuple[Callable[[str], None], ...] = (
    points_are_within_the_space,
    points_are_not_all_one,
    sampler_seed_decides,
    restarted_search_is_the_same,
    failed_points_are_survived,
)
"""All checks of a sampler, called as `check(name)`."""


def best_point_is_kept(name: str) -> None:
    """Check that a search point is not pruned if it is better than all others at each epoch.

    It is also nearly perfect, so that a threshold keeps it.
    """
    courses = [[place / _POINTS + epoch / 1000 for epoch in range(_EPOCHS)] for place in range(_POINTS)]
    given_up = _given_up(name, courses)
    assert given_up[-1] is None, f"the best of {_POINTS} points is pruned after epoch {given_up[-1]}"


def first_point_is_kept(name: str) -> None:
    """Check that the first search point is not pruned if it is perfect. It has no others for comparison."""
    (given_up,) = _given_up(name, [[1.0] * _EPOCHS])
    assert given_up is None, f"the only point is pruned after epoch {given_up}"


def scheduler_is_repeatable(name: str) -> None:
    """Check that a scheduler prunes equal curves at equal epochs. A resumed search requires this."""
    generator = random.Random(5)
    courses = [[generator.random() for _ in range(_EPOCHS)] for _ in range(_POINTS)]
    assert _given_up(name, courses) == _given_up(name, courses), "the same curves are pruned differently"


SCHEDULER_CHECKS: tuple[Callable[[str], None], ...] = (
    best_point_is_kept,
    first_point_is_kept,
    scheduler_is_repeatable,
)
"""All checks of a scheduler, called as `check(name)`."""


@cache
def _study(name: str = "random", seed: int = 0) -> Study:
    return load_study(STUDY, [f"search.sampler={name}", f"search.seed={seed}"])


def _search(name: str, seed: int) -> list[tuple[Values, str]]:
    """Return the points of a search by a sampler, each with the sampler that has proposed it."""
    asked, found = OptunaStudy(_study(name, seed)), list[tuple[Values, str]]()
    for begun in range(_POINTS):
        point, trial, source = propose(asked, begun)
        asked.tell(point, _end(point.values), trial)
        found.append((point.values, source))
    return found


def propose(asked: OptunaStudy, begun: int) -> tuple[SearchPoint, optuna.Trial, str]:
    """Return the next search point after this number of points, its Optuna trial, and its sampler."""
    proposed = asked.propose(lambda values: SearchPoint(values, ()), begun)
    assert proposed is not None, f"no point is proposed after {begun} points"
    return proposed


def _end(values: Values) -> PointEnd:
    return PointEnd(TrialState.COMPLETE, 1, (float(values["rate"]) + len(values),))


@quiet_optuna()
def _given_up(name: str, courses: Sequence[Sequence[float]]) -> list[int | None]:
    keys = {"scheduler": name, "trials": _POINTS, "metric": "accuracy", "direction": "max"}
    settings = SearchSettings.model_validate(keys)
    study = optuna.create_study(
        study_name="courses",
        direction="maximize",
        sampler=optuna.samplers.RandomSampler(seed=0),
        pruner=make_pruner(settings),
    )
    return [_run_course(study, course) for course in courses]


def _run_course(study: optuna.Study, course: Sequence[float]) -> int | None:
    trial = study.ask()
    for epoch, value in enumerate(course, start=1):
        trial.report(value, epoch)
        if trial.should_prune():
            study.tell(trial, state=TrialState.PRUNED)
            return epoch
    study.tell(trial, course[-1])
    return None
