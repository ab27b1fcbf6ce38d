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
from functools import cache, partial

import optuna
from optuna.trial import TrialState

from ....studies.schema.search import contains
from ....studies.schema.search_settings import SearchSettings
from ....studies.schema.settings import Level
from ....studies.study import Study, load_study
from .ask_tell import make_pruner, make_sampler, quiet_optuna
from .samplers.search_observations import suggest

Values = dict[str, Level]

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
    for values in _search(name, 0, _POINTS):
        with_heads = str(values["mixer"]).startswith("sa")
        taken = {"rate", "mixer", *(["heads"] if with_heads else ["kernel", "other"])}
        assert values.keys() == taken, f"expected values of {sorted(taken)}, got {sorted(values)}"
        for dimension, value in values.items():
            within = contains(_the_study().dimensions[dimension], value)
            assert within, f"expected a value of {dimension}, got {value}"


def points_are_not_all_one(name: str) -> None:
    """Check that a sampler does not propose the same search point each time."""
    assert len({str(values) for values in _search(name, 0, _POINTS)}) > 1, "every proposed point is the same"


def sampler_seed_decides(name: str) -> None:
    """Check that a sampler's points depend only on its seed. It must never use Python's generator."""
    random.seed(1)
    before = random.getstate()
    first = _search(name, 3, _POINTS)
    assert random.getstate() == before, "points were drawn from Python's own generator"
    random.seed(2)
    assert _search(name, 3, _POINTS) == first, "the same seed proposes different points"


@quiet_optuna()
def restarted_search_is_the_same(name: str) -> None:
    """Check that a restarted search proposes the same points."""
    whole = _study(name, 0)
    expected = [_ask(whole) for _ in range(_POINTS)]
    for stopped in range(1, _POINTS):
        again = _study(name, 0)
        again.add_trials(whole.trials[:stopped])
        found = _ask(again)
        assert found == expected[stopped], f"a search restarted after {stopped} points proposes {found}"


@quiet_optuna()
def failed_points_are_survived(name: str) -> None:
    """Check that a sampler proposes further points after failed and pruned ones."""
    study = _study(name, 0)
    for place in range(_POINTS):
        trial = study.ask()
        _suggest(trial)
        state = (TrialState.FAIL, TrialState.PRUNED, TrialState.COMPLETE)[place % 3]
        if state == TrialState.PRUNED:
            trial.report(0.5, 1)
        study.tell(trial, 0.5 if state == TrialState.COMPLETE else None, state=state)


SAMPLER_CHECKS: tuple[Callable[[str], None], ...] = (
    points_are_within_the_space,
    points_are_not_all_one,
    sampler_seed_decides,
    restarted_search_is_the_same,
    failed_points_are_survived,
)
"""All checks of a sampler, called as `check(name)`."""


def best_point_is_kept(name: str) -> None:
    """Check that a search point is not pruned if it is better than all others at each epoch."""
    courses = [[place / 40 + epoch / 100 for epoch in range(_EPOCHS)] for place in range(_POINTS)]
    given_up = _given_up(name, courses)
    assert given_up[-1] is None, f"the best of {_POINTS} points is pruned after epoch {given_up[-1]}"


def first_point_is_kept(name: str) -> None:
    """Check that the first search point is not pruned. It has no others for comparison."""
    (given_up,) = _given_up(name, [[0.1] * _EPOCHS])
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
def _the_study() -> Study:
    return load_study(STUDY)


def _study(name: str, seed: int) -> optuna.Study:
    keys = {"sampler": name, "trials": _POINTS, "metric": "accuracy", "direction": "max", "seed": seed}
    settings = SearchSettings.model_validate(keys)
    return optuna.create_study(direction="maximize", sampler=make_sampler(settings, _the_study()))


@quiet_optuna()
def _search(name: str, seed: int, points: int) -> list[Values]:
    study = _study(name, seed)
    return [_ask(study) for _ in range(points)]


def _ask(study: optuna.Study) -> Values:
    trial = study.ask()
    values = _suggest(trial)
    study.tell(trial, float(values["rate"]) + len(values))
    return values


def _suggest(trial: optuna.Trial) -> Values:
    search = _the_study().search
    assert search is not None
    return search.choose(partial(suggest, trial))


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
    _suggest(trial)
    for epoch, value in enumerate(course, start=1):
        trial.report(value, epoch)
        if trial.should_prune():
            study.tell(trial, state=TrialState.PRUNED)
            return epoch
    study.tell(trial, course[-1])
    return None
