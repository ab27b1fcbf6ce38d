"""What is told of a population: how far it is, its members with their courses, and the study that decides."""

import json

import pytest

from activemem.engine.run.search.proposals import SearchDesk
from activemem.reporting.results import StudyResults
from activemem.reporting.search.promotion import PromotionError
from activemem.reporting.tables.render import rich
from activemem.storage import Store
from activemem.studies.planning.plan import make_plan
from activemem.studies.planning.population import generations, member_levels
from activemem.studies.planning.status import study_status
from activemem.studies.rounds import follow_rounds
from activemem.studies.searches.points import find_points
from activemem.studies.searches.rung_costs import rung_costs
from activemem.studies.searches.words import generation_words
from activemem.studies.study import StudyError, load_study
from activemem.tracking.search_export import TrackingError, export_search

from ...study_texts import POPULATION, replaced
from .conftest import keep

TEXT = replaced(
    POPULATION,
    ("[model]", "baseline = { lr = 0.01, decay = 0 }\nbaseline_seeds = 2\n[model]"),
    ("= 4", "= 5"),
)


def fill(store, study, count, loss=lambda levels: abs(float(str(levels["lr"]).split()[0]) - 0.1)):
    """Store so many generations, as if they had been trained; "failed" is no loss."""
    for minutes in range(count):
        for trial in follow_rounds(study, store).trials:
            if trial.id in store.trials()["trial"].to_list():
                continue
            end = loss(trial.levels)
            keep(
                store,
                trial,
                status="failed" if end == "failed" else "done",
                minutes=minutes,
                metrics=() if end == "failed" else (("loss", end),),
                settings=trial.settings.model_dump_json(),
                factors=json.dumps(dict(trial.levels)),
            )


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """A population of four members that has ended, with its baseline."""
    study, store = load_study(TEXT), Store(tmp_path_factory.mktemp("population"))
    fill(store, study, 3)
    return StudyResults(study, store)


def test_how_far_it_is_is_told_in_generations(tmp_path):
    study, store = load_study(TEXT), Store(tmp_path)
    assert [(each.epochs, each.trials) for each in rung_costs(study)] == [(4, 4), (4, 4), (4 + 6, 6)]
    assert generation_words(study) == (
        "4 members in 3 generations of 1 epoch and the baseline: 18 epochs, as much work as 6 whole trainings"
    )
    assert "0 of 14 trials done · 14 left · generation 1 of 3" in study_status(study, store).summary()
    fill(store, study, 1)
    status = study_status(study, store)
    assert status.summary() == "6 of 14 trials done · 8 left · generation 2 of 3"
    assert make_plan(study, store).num_remaining == 8
    found = find_points(study, store.trials())
    assert [point.seeds for point in found.ranked()] == [1] * 4  # the baseline has had more epochs


def test_where_all_have_failed_it_ends(tmp_path):
    study, store = load_study(TEXT), Store(tmp_path)
    fill(store, study, 3, lambda levels: 0.5 if levels["lr"] == 0.01 else "failed")
    status = study_status(study, store)
    assert status.summary() == (
        "2 of 14 trials done · 4 failed · 0 left · generation 1 of 3, all of whose members failed"
    )
    assert make_plan(study, store).num_remaining == 0


def test_one_that_failed_goes_on_from_one_that_has_not(tmp_path):
    study, store = load_study(POPULATION), Store(tmp_path)
    rates = [each.history[0]["lr"] for each in generations(study, store.trials())[0].members]
    fill(store, study, 1, lambda levels: 0.5 if levels["lr"] == rates[2] else "failed")
    assert [each.parent for each in generations(study, store.trials())[1].members] == [2, 2, 2, 2]
    histories = [each.history for each in generations(study, store.trials())[1].members]
    assert len({str(each) for each in histories}) == 4


def test_tables_have_the_courses_of_the_last_members(ended):
    found = find_points(ended.study, ended.store.trials())
    assert len(found.complete) == 5
    text = rich.render(ended.best_table().table)
    assert "→" in text
    assert "2 members ended before: others went on from better ones." in " ".join(text.split())
    assert "earliest of them" not in text


def test_winners_are_trained_with_their_courses_on_fresh_seeds(ended):
    study = load_study(ended.promote(best=3, seeds=1))
    last = generations(ended.study, ended.store.trials())[-1]
    best = [member_levels(ended.study, last.members[place]) for place in last.ranked[:3]]
    assert any(isinstance(value, str) for values in best for value in values.values())
    trials = {trial.levels["point"]: trial for trial in study.trials}
    for number, values in enumerate(best, 1):
        assert trials[f"best_{number}"].settings == ended.study.trial_for(values, 2).settings
    assert trials["baseline"].settings == ended.study.trial_for(ended.study.baseline, 2).settings
    assert trials["baseline"].settings.train.changes == ()


def test_what_is_about_points_that_keep_their_values_refuses_it(ended, tmp_path):
    with pytest.raises(PromotionError, match="leave --path out"):
        ended.promote(path=True)
    with pytest.raises(StudyError, match="proposes none: its members follow from each other"):
        SearchDesk(ended.study, ended.store)
    with pytest.raises(TrackingError, match="expected a search whose points keep theirs"):
        export_search(ended.study, ended.store, str(tmp_path / "search.db"))
    with pytest.raises(StudyError, match="expected points or front"):
        load_study(TEXT + '\n[[curve]]\nname = "it"\nkind = "incumbent"\n')


def test_a_table_of_no_points_has_its_words_alone(tmp_path):
    text = rich.render(StudyResults(load_study(TEXT), Store(tmp_path)).best_table().table)
    assert text.splitlines()[0].endswith("no point that")
    assert text.splitlines()[-2:] == ["", "  0 trials"]
