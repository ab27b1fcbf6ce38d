"""Points of a search with several objectives and limits, from rows of a store."""

import math

import pytest

from activemem.storage import Store
from activemem.studies.searches.best_points import best_points
from activemem.studies.searches.points import pareto_front, search_points
from activemem.studies.study import load_study
from activemem.studies.text.errors import StudyError

from ...study_texts import replaced, study_text
from ..planning.test_plan import keep

SEARCH = study_text(
    model={"recipe": "conv(k=integer(2, 9)) >> ff(8)"},
    task={"name": "sort"},
    search={"trials": 9, "metric": ["max_length", "parameters"], "limits": {"seconds": "< 60"}},
    factors={"seed": [0, 1]},
)
LIMITS = 'limits = { seconds = "< 60" }'
VALUES = {2: (5, 7), 3: (6, 6), 4: (9, 9), 5: (8, 8), 9: (99, 99)}


@pytest.fixture
def store(tmp_path):
    """Points of several kernels; the last takes too long, and one has but one seed."""
    found, study = Store(tmp_path / "results"), load_study(SEARCH)
    for minutes, (kernel, lengths) in enumerate(VALUES.items()):
        for trial, length in zip(study.point_trials({"conv.k": kernel}), lengths, strict=True):
            keep(
                found,
                trial,
                minutes=minutes,
                seconds=50 if kernel < 9 else 70,
                parameters=1000 + kernel,
                metrics=(("max_length", float(length)),),
            )
    keep(found, study.point_trials({"conv.k": 7})[0], metrics=(("max_length", 50.0),))
    return found


def test_each_point_has_its_objectives_and_whether_it_keeps_to_the_limits(store):
    study = load_study(SEARCH)
    found = {each.values["conv.k"]: each for each in search_points(study, store.trials())}
    assert found.keys() == {*VALUES, 7}
    assert found[3].objectives == (6.0, 1003)
    assert found[2].per_seed == ((5.0, 1002), (7.0, 1002))
    assert {kernel for kernel, each in found.items() if each.feasible} == {2, 3, 4, 5, 7}
    assert {kernel for kernel, each in found.items() if each.counts} == {2, 3, 4, 5}
    assert (found[7].seeds, found[7].seconds, found[2].studies) == ((0,), 10.0, ("tiny",))


def test_the_front_is_what_no_other_point_beats(store):
    study = load_study(SEARCH)
    points = search_points(study, store.trials())
    assert [each.values["conv.k"] for each in pareto_front(points, study.search.objectives)] == [4, 2]
    assert [each.mean for each in best_points(study, store.trials())] == [9.0, 6.0]
    free = load_study(replaced(SEARCH, (LIMITS, "")))
    assert [each.values["conv.k"] for each in best_points(free, store.trials())] == [9, 4, 2]


def test_a_failed_point_has_no_objectives_and_is_not_compared(store):
    study = load_study(SEARCH)
    for trial in study.point_trials({"conv.k": 6}):
        keep(store, trial, status="failed", minutes=9)
    failed = search_points(study, store.trials())[-1]
    assert (failed.status, failed.seeds, failed.feasible, failed.counts) == ("failed", (), None, False)
    assert all(map(math.isnan, failed.objectives))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (["search.sampler=cmaes"], "cmaes is for one metric alone, got max_length, parameters"),
        (["search.scheduler=asha"], "asha is for one metric alone, got max_length, parameters"),
        (["search.direction=max"], "direction: expected one for each of max_length, parameters, got max"),
        (["search.min_epochs=2"], "min_epochs: for the schedulers asha and hyperband alone, got none"),
        (["search.budget={ hours = 0 }"], "hours: expected a number above 0, got 0"),
        (["search.metric=[]"], "metric: expected at least one, got an empty list"),
        (['search.metric=["loss", "loss"]'], "metric: expected different ones, got loss, loss"),
        (["search.metric=gradient_norm"], "neither way is better of gradient_norm by itself: say direction"),
        (["search.metric=parametres"], "unknown metric 'parametres'; nearest: parameters"),
        (
            ["search.metric=seconds", "search.scheduler=asha"],
            "asha needs a metric of each epoch, got 'seconds",
        ),
        (['search.limits.reach="about 5"'], "reach: expected <, <=, > or >= and a number, as in '< 60'"),
        (['search.limits.bleu="> 5"'], "expected a metric of sort, of loss"),
        (
            ["search.sampler=cmaes", "search.metric=loss"],
            "cmaes learns no limits, but seconds is known",
        ),
    ],
)
def test_what_cannot_be_optimised_is_refused(changes, told):
    with pytest.raises(StudyError) as failure:
        load_study(SEARCH, changes)
    assert told in str(failure.value)
