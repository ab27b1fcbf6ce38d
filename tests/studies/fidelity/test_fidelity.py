"""Fidelities of searches: supported settings, and errors."""

import pytest

from activemem import StudyError, load_study
from activemem.studies.expansions import Fidelity

from ...study_texts import SEARCH_OF_RUNGS as SEARCH


@pytest.mark.parametrize(
    ("changes", "rungs", "settings"),
    [
        (["search.scheduler.fidelity=data"], (3, 9, 27), lambda found: found.train.steps_per_epoch),
        (
            [
                "search.scheduler.fidelity=length",
                "train.curriculum.end=50",
                "search.scheduler.min_fidelity=6",
            ],
            (6, 50),
            lambda found: found.train.curriculum.end,
        ),
        (
            ["search.scheduler.fidelity=width", "search.trials=27", "factors.width=[8, 16, 32, 64]"],
            (8, 16, 32, 64),
            lambda found: found.model,
        ),
    ],
)
def test_a_rung_is_a_training_with_settings_of_its_own(changes, rungs, settings):
    text = SEARCH.replace('width = "integer(8, 72)"\n', "")
    text = text if any("factors" in change for change in changes) else text.replace("{width}", "8")
    study = load_study(text, changes)
    assert study.fidelity.rungs == rungs
    trials = [study.point_trials({"k": 3}, rung)[0] for rung in range(len(rungs))]
    assert len({trial.id for trial in trials}) == len(rungs)
    assert trials[-1].id == study.trial_for({"k": 3}).id
    if "factors" not in changes[-1]:
        assert tuple(settings(trial.settings) for trial in trials) == rungs


WRONG = {
    "search.scheduler.fidelity=widht": "expected epochs, length, data, a factor or a dimension, "
    "got 'widht'; nearest: width",
    "search.scheduler.min_fidelity=4": "min_fidelity has no effect, since the first rung is width = 8: "
    "remove min_fidelity",
    "search.scheduler={name='none', fidelity='data'}": "scheduler: unknown key 'fidelity'",
    "search.fidelity=data": 'write scheduler = { name = "asha", fidelity = "data" }',
    "search.scheduler.fidelity=length": 'fidelity = "length" raises the longest training length: expected',
    "search.metric=parameters": "asha needs a metric that training changes, got 'parameters'",
    "search.space.width='choice(8, 72)'": 'fidelity = "width" needs integer(lo, hi), got',
    "search.space.width='integer(60, 72)'": "two rungs, but reduction = 3 gives only one, at width = 72",
    "search.space.width='real(8, 72)'": "needs integer(lo, hi)",
    "search.space.width=3": "needs integer(lo, hi), got 3: write integer",
    "search.trials=8": "expected at least 9 points, so that one reaches the last of 3 rungs, got 8",
    "search.trials=1000000000000": "expected at most 100000, got 1000000000000",
    "search.scheduler=['asha']": "scheduler: expected a text or a table, got a list of 1",
    "search.scheduler.reduction=1": "reduction: expected at least 2, got 1",
    "train.curriculum.start=99999999": "expected at most 1048576, got 99999999",
    "train.lengths=[1, 99999999]": "expected at most 1048576, got 99999999",
    "factors.width=[true, false]": "expected whole numbers, one per rung, got true",
    "factors.data=[1]": "'data' is a built-in fidelity: give the factor or dimension another name",
}


@pytest.mark.parametrize("change", WRONG)
def test_impossible_fidelities_are_reported_together(change):
    more = ["search.scheduler.fidelity=data"] if change.startswith("factors.data") else []
    with pytest.raises(StudyError) as told:
        load_study(SEARCH, [change, *more])
    assert WRONG[change] in str(told.value)


@pytest.mark.parametrize("change", ["train.steps_per_epoch=2", "search.scheduler.min_fidelity=27"])
def test_rungs_that_have_no_room_are_the_only_fault(change):
    with pytest.raises(StudyError) as told:
        load_study(SEARCH, ["search.scheduler.fidelity=data", change])
    assert str(told.value).startswith("study: 1 fault\n")


def test_a_first_rung_of_epochs_at_which_all_have_ended_is_refused(golden):
    changes = ["search.scheduler.fidelity=epochs", "train.epochs=4"]
    assert (
        load_study(
            SEARCH, [*changes, "search.scheduler.min_fidelity=3"]
        ).search.settings.scheduler.min_fidelity
        == 3
    )
    with golden.raises(StudyError):
        load_study(SEARCH, [*changes, "search.scheduler.min_fidelity=4"])


def test_rungs_of_many_points_are_counted_at_once(golden):
    changes = ["search.trials=100000", "search.scheduler.fidelity=data", "train.steps_per_epoch=1000000000"]
    many = load_study(SEARCH, [*changes, "search.scheduler.min_fidelity=100000000"])
    assert sum(many.points_by_rung) > 100_000
    with golden.raises(StudyError):
        load_study(SEARCH, [*changes, "search.scheduler.min_fidelity=1"])


def test_the_last_rung_is_reached_from_the_least_points_on():
    fidelity = Fidelity(name="width", rungs=(1, 3, 9), reduction=3)
    assert fidelity.planned(17) == [17, 5, 1]
    assert fidelity.planned(18, has_baseline=True) == [17, 5, 2]
    assert next(points for points in range(20) if fidelity.planned(points)[-1]) == fidelity.least_points == 9


def test_hyperband_is_refused_with_what_to_write_instead(golden):
    with golden.raises(StudyError):
        load_study(SEARCH, ["search.scheduler.name=hyperband"])
