"""Known points of a search: stored trials with the settings of a point of its space."""

import json

import pytest

from activemem import StudyError, load_study
from activemem.storage import Store
from activemem.studies import find_points, make_plan, study_status
from activemem.studies.planning.status import study_outcomes
from activemem.studies.searches.points import comparison_note

from ...study_texts import replaced, study_text
from ..test_plan import keep

SEARCH = study_text(
    model={"recipe": "choice(sa, conv(k=integer(2, 9))) >> ff(8)"},
    task={"name": "sort"},
    search={"trials": 9, "metric": "accuracy", "direction": "max"},
    space={"lr": "real(1e-4, 1e-1, log=true)"},
    train={"optimizer": {"name": "adam", "lr": "{lr}"}},
    factors={"seed": [0, 1]},
)
OTHER_TASK = replaced(SEARCH, ('"sort"', '"reverse"'))
SMALLER = replaced(SEARCH, ("integer(2, 9)", "integer(2, 5)"))

POINTS = (
    ({"lr": 0.01, "choice": "conv(k=integer(2, 9))", "conv.k": 7}, 0.5),
    ({"lr": 0.01, "choice": "sa"}, 0.7),
)


@pytest.fixture
def store(tmp_path):
    """Return both points on two tasks, stored under another study's name."""
    found = Store(tmp_path / "results")
    for text, more in ((SEARCH, 0.0), (OTHER_TASK, 0.2)):
        for values, value in POINTS:
            for trial in load_study(text).search.trials_of(values):
                keep(found, trial, metrics=(("accuracy", value + more),))
    return found


def test_points_of_another_task_or_seed_are_not_of_this_search(store):
    for text, best in ((SEARCH, 0.7), (OTHER_TASK, 0.9)):
        study = load_study(text)
        assert [each.mean for each in find_points(study, store.trials()).best()] == pytest.approx(
            [best, best - 0.2]
        )
        assert make_plan(study, store).counts == {"done": 4}
        assert study_status(study, store).summary() == "4 of 18 trials done · 14 left"
    one_seed = load_study(SEARCH, ["factors.seed=[1]"])
    assert study_status(one_seed, store).summary() == "2 of 9 trials done · 7 left"
    assert [each.mean for each in find_points(one_seed, store.trials()).best()] == pytest.approx([0.7, 0.5])


def test_points_outside_of_the_space_are_not_of_this_search(store):
    outcomes = study_outcomes(load_study(SMALLER), store.trials())
    assert set(outcomes["recipe"]) == {"sa >> ff(8)"}
    narrow = load_study(SEARCH, ['search.space.lr="real(0.02, 0.1)"'])
    assert study_outcomes(narrow, store.trials()).is_empty()


def test_inactive_dimensions_do_not_distinguish_points(store):
    study = load_study(SEARCH)
    values = {"lr": 0.05, "choice": "sa"}
    for trial, untaken in zip(study.search.trials_of(values), ({}, {"conv.k": 3}), strict=True):
        levels = {**trial.levels, **untaken}
        keep(store, trial, factors=json.dumps(levels), metrics=(("accuracy", 0.8),))
    assert find_points(study, store.trials()).best()[0].values == values


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ([], "accuracy is measured at the length that each point's curriculum has reached"),
        (["search.metric=max_length"], ""),
        (["train.lengths=[1, 8]", "search.metric=dev_accuracy"], ""),
    ],
)
def test_an_accuracy_at_different_lengths_is_reported(changes, told):
    text = replaced(SEARCH, ("curriculum = { start = 5 }\n", "")) if "train" in str(changes) else SEARCH
    note = comparison_note(load_study(text, changes))
    assert note.startswith(told)
    assert bool(note) == bool(told)


@pytest.mark.parametrize(
    "changes",
    [
        ["search.metric=bleu"],
        ["search.metric=test_accuracy"],
        ["search.metric=test_accuracy", "task.test_lengths=[4]", "search.scheduler=asha"],
    ],
    ids=str,
)
def test_a_metric_that_the_task_does_not_have_is_refused(changes, golden):
    with golden.raises(StudyError):
        load_study(SEARCH, changes)
    assert load_study(SEARCH, ["search.metric=test_accuracy", "task.test_lengths=[4]"]).search
