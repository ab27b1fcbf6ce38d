"""Studies that confirm a search: its winners on fresh seeds."""

import json

import pytest

from activemem import StudyError, StudyResults, load_study
from activemem.reporting.search.promotion import PromotionError
from activemem.storage import Store

from ...studies.test_plan import keep
from ...study_texts import SEARCH_OF_RUNGS, replaced, study_text
from .conftest import CONV, POINTS, SEARCH, WITH_BASELINE, fill_search

WITH_SEEDS = study_text(study={"baseline_seeds": 3}, factors={"mixer": ["sa"], "task": ["sort"]})

SOURCE = """
[source]
model.recipe = "paper: section 3"
model.d_model = "ours: small"
task = "paper: section 4"
train = "ours: short"
factors.mixer = "ours: all"
factors.task = "ours: one"
factors.dropout = "ours: none"
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return the search with its baseline, which has two seeds more than other points."""
    study, store = load_study(WITH_BASELINE), Store(tmp_path_factory.mktemp("promoted"))
    fill_search(store, study, [(POINTS[0][0], (10.0, 12.0, 11.0, 9.0), 3000), *POINTS[1:]])
    return StudyResults(study, store)


def test_winners_are_trained_as_in_the_search_on_seeds_that_it_has_not_seen(results):
    study = load_study(results.promote(best=2))
    assert study.seeds == (4, 5, 6, 7, 8)
    points = {trial.levels["point"]: trial for trial in study.trials}
    assert list(points) == ["baseline", "best_1", "best_2"]
    best = results.study.search.trial_of({"lr": 0.004, "choice": CONV, "conv.k": 6}, 8)
    assert points["best_1"].settings == best.settings
    assert not {trial.id for trial in study.trials} & set(results.store.trials()["trial"])


def test_seeds_of_cells_that_another_study_has_trained_are_not_fresh(tmp_path):
    study, store = load_study(WITH_BASELINE), Store(tmp_path)
    fill_search(store, study, [(POINTS[0][0], (10.0, 12.0, 11.0, 9.0), 3000), *POINTS[1:]])
    trial = study.search.trial_of(study.search.baseline, 5)
    keep(store, trial, study="other", metrics=(("max_length", 1.0),))
    assert load_study(StudyResults(study, store).promote()).seeds == (6, 7, 8, 9, 10)


def test_a_baseline_among_the_best_points_is_not_a_winner(results):
    levels = {trial.levels["point"] for trial in load_study(results.promote(best=5)).trials}
    assert levels == {"baseline", "best_1", "best_2", "best_3", "best_4"}  # of five that are whole


def test_the_claims_are_decided_by_the_fresh_trainings_alone(results, tmp_path):
    study, store = load_study(results.promote(best=2)), Store(tmp_path)
    lengths = {"baseline": 11.0, "best_1": 17.0, "best_2": 11.5}
    for trial in study.trials:
        noise = (-1.0, 0.5, 1.0, 0.0, -0.5)[trial.settings.seed - 4]
        keep(store, trial, metrics=(("max_length", lengths[str(trial.levels["point"])] + noise),))
    found = StudyResults(study, store)
    assert found.claims.select("claim", "verdict").rows() == [
        ("best_1 has a higher max_length than baseline", "confirmed"),
        ("best_2 has a higher max_length than baseline", "undecided"),
    ]
    assert found.table().rows == ("baseline", "best_1", "best_2")


def test_without_a_baseline_the_first_is_held_against_the_others(search_store, golden):
    results = StudyResults(load_study(SEARCH), search_store)
    study = load_study(results.promote(best=3, seeds=2))
    assert study.seeds == (2, 3)
    golden([claim.spec.name for claim in study.claims])
    with golden.raises(PromotionError):
        results.promote(best=1)
    with golden.raises(PromotionError):
        StudyResults(load_study(SEARCH, ["train.epochs=3"]), search_store).promote()


def test_without_a_baseline_two_points_are_held_against_each_other(search_store):
    study = load_study(StudyResults(load_study(SEARCH), search_store).promote(best=2))
    assert study.claims[0].spec.holds == "max_length[point=best_1] > max_length[point=best_2]"


def test_points_that_all_tie_are_not_promoted(tmp_path, golden):
    study, store = load_study(WITH_BASELINE), Store(tmp_path)
    points = [(POINTS[0][0], (3.0,) * 4, 3000), *((values, (3.0, 3.0), 1000) for values, _, _ in POINTS[1:])]
    fill_search(store, study, points)
    with golden.raises(PromotionError):
        StudyResults(study, store).promote()
    without = StudyResults(load_study(SEARCH), store)
    with golden.raises(PromotionError):
        without.promote(best=2)


def test_what_a_small_search_finds_is_small_too(results):
    small = load_study(WITH_BASELINE.replace("[study]\n", "[study]\nsmall = true\n", 1))
    assert load_study(StudyResults(small, results.store).promote()).header.small
    assert not load_study(results.promote()).header.small


def test_the_winners_of_a_shipped_search_have_the_header_of_the_shipped_study():
    search = StudyResults(load_study("tune-kernel"), Store("studies/results"))
    found, shipped = load_study(search.promote(best=1)), load_study("tune-kernel-winners")
    assert found.header == shipped.header


def test_holes_in_levels_sources_overrides_and_fixed_factors_are_kept(tmp_path):
    text = study_text(
        study={"baseline": {"mixer": "sa", "width": 8}, "paper": "active-memory-transformer"},
        model={"recipe": "{mixer} >> ff({width})", "dropout": "{dropout}"},
        task={"name": "{task}"},
        search={"trials": 3, "metric": "loss", "direction": "min"},
        space={"k": "integer(2, 9)", "width": "choice(8, 16)"},
        factors={"task": ["sort"], "mixer": ["sa", "conv(k={k})"], "dropout": [0.0]},
    )
    study = load_study(text + SOURCE, ["train.batch_size=8"])
    store = Store(tmp_path)
    fill_search(
        store,
        study,
        [
            ({"mixer": "sa", "width": 8}, (5.0,), 1),
            ({"k": 4, "mixer": "conv(k={k})", "width": 16}, (9.0,), 1),
        ],
    )
    results = StudyResults(study, store)
    winners = load_study(results.promote())
    assert {trial.settings.train.batch_size for trial in winners.trials} == {8}
    assert {trial.settings.task.name for trial in winners.trials} == {"sort"}
    assert winners.source_sheet.is_given
    assert {trial.settings.model.recipe for trial in winners.trials} == {"sa >> ff(8)", "conv(k=4) >> ff(16)"}
    assert winners.claims[0].spec.holds == "loss[point=best_1] < loss[point=baseline]"


@pytest.mark.parametrize(
    "baseline",
    [
        "{ lr = 0.01 }",
        '{ lr = 0.01, choice = "sa", "conv.k" = 3 }',
        '{ lr = 1, choice = "sa" }',
        '{ rate = 1, choice = "sa" }',
        '{ lr = 0.01, choice = "gru" }',
    ],
)
def test_a_baseline_that_is_no_point_of_the_space_is_reported(baseline, golden):
    with golden.raises(StudyError):
        load_study(replaced(WITH_BASELINE, ('{ lr = 0.01, choice = "sa" }', baseline)))


def test_seeds_of_a_baseline_need_one(golden):
    for text in (WITH_BASELINE.replace('baseline = { lr = 0.01, choice = "sa" }\n', ""), WITH_SEEDS):
        with golden.raises(StudyError):
            load_study(text)


ACROSS = study_text(
    study={"baseline": {"depth": "{first}", "first": "{attention}"}},
    model={"recipe": "{depth}"},
    task={"name": "{task}"},
    search={"trials": 3, "metric": "loss", "direction": "min", "across": ["task"]},
    factors={"task": ["sort", "not"], "seed": [0]},
    space={
        "depth": "choice({first}, {first} >> {second})",
        "first": "choice({attention}, {attention} + conv(k={k}))",
        "second": "choice(ff(8), {first} >> ff({filter}))",
        "k": "integer(2, 9)",
        "filter": "integer(2, 9)",
    },
).replace("[task]", '[recipes]\nattention = "sa"\n\n[task]', 1)


def test_a_search_across_tasks_is_decided_by_the_mean_over_them(tmp_path):
    study, store = load_study(ACROSS), Store(tmp_path)
    best = {
        "depth": "{first} >> {second}",
        "first": "{attention} + conv(k={k})",
        "second": "{first} >> ff({filter})",
        "k": 4,
        "filter": 8,
    }
    for minutes, (values, losses) in enumerate(
        ((dict(study.search.baseline), (4.0, 2.0)), (best, (1.0, 3.0)))
    ):
        for trial, loss in zip(study.search.trials_of(values), losses, strict=True):
            factors, settings = json.dumps(dict(trial.levels)), trial.settings.model_dump_json()
            keep(store, trial, minutes=minutes, metrics=(("loss", loss),), settings=settings, factors=factors)
    results = StudyResults(study, store)
    winners = load_study(results.promote(best=1))
    assert {(trial.levels["point"], trial.settings.task.name) for trial in winners.trials} == {
        (point, task) for point in ("baseline", "best_1") for task in ("sort", "not")
    }
    lengths = {"sort": {"baseline": 4.0, "best_1": 1.0}, "not": {"baseline": 2.0, "best_1": 3.0}}
    for trial in winners.trials:
        loss = lengths[trial.settings.task.name][str(trial.levels["point"])]
        keep(store, trial, metrics=(("loss", loss + 0.01 * (trial.settings.seed % 2)),))
    assert StudyResults(winners, store).claims["verdict"].to_list() == ["confirmed"]


def test_the_winners_of_rungs_that_are_settings_are_trained_with_all_of_them(tmp_path):
    text = replaced(
        SEARCH_OF_RUNGS,
        ('width = "integer(8, 72)"\n', ""),
        ("{width}", "8"),
        ("[model]", "baseline = { k = 3 }\n[model]"),
    )
    study, store = load_study(text, ["search.scheduler.fidelity=data"]), Store(tmp_path)
    for loss, values in enumerate(({"k": 3}, {"k": 4})):
        for trial in study.search.trials_of(values):
            factors, settings = json.dumps(dict(trial.levels)), trial.settings.model_dump_json()
            keep(store, trial, metrics=(("loss", float(loss)),), settings=settings, factors=factors)
    winners = load_study(StudyResults(study, store).promote(best=2))
    assert {trial.settings.train.steps_per_epoch for trial in winners.trials} == {27}


@pytest.mark.parametrize(
    ("metric", "note"),
    [
        ("dev_loss", "# test_loss is claimed, because the dev split has chosen the points."),
        ("test_loss", "# The test split has chosen the points, so test_loss flatters them."),
    ],
)
def test_claims_are_on_the_test_split_with_a_note_on_what_has_chosen_the_points(tmp_path, metric, note):
    text = study_text(
        study={"baseline": {"k": 3}},
        model={"recipe": "conv(k={k})"},
        task={"name": "mqar", "length": 32, "pairs": 4},
        search={"trials": 2, "metric": metric, "space": {"k": "choice(3, 5)"}},
        train={"curriculum": None},
        factors={"mixer": None, "task": None, "seed": [0]},
    )
    study, store = load_study(text), Store(tmp_path)
    for k in (3, 5):
        (trial,) = study.search.trials_of({"k": k})
        settings, factors = trial.settings.model_dump_json(), json.dumps(dict(trial.levels))
        keep(store, trial, metrics=((metric, 1 / k),), settings=settings, factors=factors)
    text = StudyResults(study, store).promote(best=1)
    winners = load_study(text)
    assert note in text.splitlines()
    assert winners.tables[0].value == tuple(dict.fromkeys((metric, "test_loss", "parameters")))
    assert [claim.spec.holds for claim in winners.claims] == [
        "test_loss[point=best_1] < test_loss[point=baseline]"
    ]
