"""Points of a search with several objectives and limits, from stored rows."""

import pytest

from activemem import StudyError, load_study
from activemem.storage import Store
from activemem.studies import find_points
from activemem.studies.planning.final_values import ValueStatus
from activemem.studies.searches.words import left_out, over_limit_sentence

from ...study_texts import replaced, study_text
from ..test_plan import keep

SEARCH = study_text(
    model={"recipe": "conv(k=integer(2, 9)) >> ff(8)"},
    task={"name": "sort"},
    search={"trials": 9, "metric": ["max_length", "parameters"]},
    study={"limits": {"seconds": "< 60"}},
    factors={"seed": [0, 1]},
)
LIMITS = 'limits = { seconds = "< 60" }'
VALUES = {2: (5, 7), 3: (6, 6), 4: (9, 9), 5: (8, 8), 9: (99, 99)}


@pytest.fixture
def store(tmp_path):
    """Return points of several kernels; the last exceeds the time limit, and one has a single seed."""
    found, study = Store(tmp_path / "results"), load_study(SEARCH)
    for minutes, (kernel, lengths) in enumerate(VALUES.items()):
        for trial, length in zip(study.search.trials_of({"conv.k": kernel}), lengths, strict=True):
            keep(
                found,
                trial,
                minutes=minutes,
                seconds=50 if kernel < 9 else 70,
                parameters=1000 + kernel,
                metrics=(("max_length", float(length)),),
            )
    keep(found, study.search.trials_of({"conv.k": 7})[0], metrics=(("max_length", 50.0),))
    return found


def test_each_point_has_its_objectives_and_whether_it_respects_the_limits(store):
    study = load_study(SEARCH)
    points = find_points(study, store.trials())
    found = {each.values["conv.k"]: each for each in points.points}
    assert found.keys() == {*VALUES, 7}
    assert (found[3].mean("max_length"), found[3].mean("parameters")) == (6.0, 1003)
    assert found[2].measured["max_length"] == {0: 5.0, 1: 7.0}
    assert {kernel for kernel, each in found.items() if each.feasible} == {2, 3, 4, 5, 7}
    assert {kernel for kernel, each in found.items() if each.is_comparable} == {2, 3, 4, 5}
    assert (found[7].seeds, found[7].seconds, points.num_infeasible, points.num_undetermined) == (
        1,
        10.0,
        1,
        0,
    )


def test_the_front_is_what_no_other_point_beats(store, golden):
    study = load_study(SEARCH)
    points = find_points(study, store.trials())
    assert [each.values["conv.k"] for each in points.front()] == [4, 2]
    best = find_points(study, store.trials()).best()
    assert [(each.means, each.limited) for each in best] == [((9.0, 1004), (50,)), ((6.0, 1002), (50,))]
    golden(list(over_limit_sentence(points)))
    free = load_study(replaced(SEARCH, (LIMITS, "")))
    assert [each.values["conv.k"] for each in find_points(free, store.trials()).best()] == [9, 4, 2]


def test_a_failed_point_has_no_objectives_and_is_not_compared(store):
    study = load_study(SEARCH)
    for trial in study.search.trials_of({"conv.k": 6}):
        keep(store, trial, status="failed", minutes=9)
    failed = find_points(study, store.trials()).points[-1]
    assert (failed.status, failed.feasible, failed.is_comparable) == (ValueStatus.FAILED, None, False)
    assert failed.mean("max_length") is None


@pytest.mark.parametrize(
    "changes",
    [
        ["search.sampler=gp_trees"],
        ["search.scheduler=asha"],
        ["search.direction=max"],
        ["search.min_fidelity=2"],
        ["search.budget={ hours = 0 }"],
        ["search.metric=[]"],
        ['search.metric=["loss", "loss"]'],
        ["search.metric=gradient_norm"],
        ["search.metric=parametres"],
        ["search.metric=seconds", "search.scheduler=asha"],
        ['study.limits.reach="about 5"'],
        ['study.limits.bleu="> 5"'],
        ["search.sampler=gp_trees", "search.metric=loss"],
    ],
    ids=str,
)
def test_quantities_that_cannot_be_optimised_are_rejected(changes, golden):
    with golden.raises(StudyError):
        load_study(SEARCH, changes)


def test_points_without_a_finite_objective_are_counted(store):
    study = load_study(SEARCH)
    for kernel, value in ((6, float("inf")), (8, float("nan"))):
        for trial in study.search.trials_of({"conv.k": kernel}):
            keep(store, trial, metrics=(("max_length", value), ("accuracy", 0.5)))
    words = list(left_out(find_points(study, store.trials())))
    assert words[0] == (2, "no finite max_length or parameters")
    assert (1, "outside a limit of the search") in words
