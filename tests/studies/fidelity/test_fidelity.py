"""Fidelities of searches: supported settings, and errors."""

import pytest

from activemem import StudyError, load_study
from activemem.studies.expansions.asha import Fidelity

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
    assert study.search.rungs.rungs == rungs
    trials = [study.search.trials_of({"k": 3}, rung)[0] for rung in range(len(rungs))]
    assert len({trial.id for trial in trials}) == len(rungs)
    assert trials[-1].id == study.search.trial_of({"k": 3}).id
    if "factors" not in changes[-1]:
        assert tuple(settings(trial.settings) for trial in trials) == rungs


WRONG = [
    "search.scheduler.fidelity=widht",
    "search.scheduler.min_fidelity=4",
    "search.scheduler={name='none', fidelity='data'}",
    "search.fidelity=data",
    "search.scheduler.fidelity=length",
    "search.metric=parameters",
    "search.space.width='choice(8, 72)'",
    "search.space.width='integer(60, 72)'",
    "search.space.width='real(8, 72)'",
    "search.space.width=3",
    "search.trials=8",
    "search.trials=1000000000000",
    "search.scheduler=['asha']",
    "search.scheduler.reduction=1",
    "train.curriculum.start=99999999",
    "train.lengths=[1, 99999999]",
    "factors.width=[true, false]",
    "factors.data=[1]",
]


@pytest.mark.parametrize("change", WRONG)
def test_impossible_fidelities_are_reported_together(change, golden):
    more = ["search.scheduler.fidelity=data"] if change.startswith("factors.data") else []
    with golden.raises(StudyError):
        load_study(SEARCH, [change, *more])


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
    assert sum(many.search.points_by_rung) > 100_000
    with golden.raises(StudyError):
        load_study(SEARCH, [*changes, "search.scheduler.min_fidelity=1"])


def test_the_last_rung_is_reached_from_the_least_points_on():
    fidelity = Fidelity(name="width", rungs=(1, 3, 9), reduction=3)
    assert fidelity.planned(17) == [17, 5, 1]
    assert fidelity.planned(18, has_baseline=True) == [17, 5, 2]
    assert next(points for points in range(20) if fidelity.planned(points)[-1]) == fidelity.least_points == 9
