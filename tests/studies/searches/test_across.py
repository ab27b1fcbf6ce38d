"""Searches with several tasks per point."""

import json

import pytest

from activemem import StudyError, load_study, open_study
from activemem.storage import Store
from activemem.studies import find_points, make_plan
from activemem.studies.planning.reused_trials import reusable_outcomes

from ...study_texts import replaced, study_text
from ..test_plan import keep

SEARCH = study_text(
    study={"baseline": {"k": 5}, "baseline_seeds": 3},
    model={"recipe": "conv(k={k}) >> ff(8)"},
    task={"name": "{task}"},
    search={"trials": 9, "metric": ["max_length", "parameters"], "across": ["task"]},
    space={"k": "integer(2, 9)"},
    factors={"task": ["sort", "not"], "seed": [0, 1]},
)


@pytest.fixture
def study():
    return load_study(SEARCH)


@pytest.fixture
def store(tmp_path, study):
    """Return two complete points, and one without a task at its second seed."""
    found = Store(tmp_path / "results")
    for minutes, (kernel, lengths) in enumerate({2: (5, 8, 7, 10), 3: (6, 6, 6, 6), 4: (9, 9, 9)}.items()):
        for trial, length in zip(study.search.trials_of({"k": kernel}), lengths, strict=False):
            keep(
                found,
                trial,
                minutes=minutes,
                parameters=1000 + kernel,
                metrics=(("max_length", float(length)),),
                settings=trial.settings.model_dump_json(),
                factors=json.dumps(dict(trial.levels)),
            )
    return found


def test_a_point_is_trained_on_each_task_with_each_seed(study):
    trials = [(trial.settings.task.name, trial.settings.seed) for trial in study.search.trials_of({"k": 4})]
    assert trials == [("sort", 0), ("not", 0), ("sort", 1), ("not", 1)]
    assert "task" not in study.dimensions
    assert len(study.search.trials_of({"k": 5})) == 6
    assert study.total == 8 * 4 + 2  # the space has 8 points of the 9 asked for


def test_a_plan_says_how_many_seeds_the_baseline_has(study, store):
    counts = "2 seeds (3 of the baseline) = 34"
    assert counts in str(open_study(study, store).plan())


def test_the_objective_is_the_mean_over_the_tasks(study, store):
    found = {each.values["k"]: each for each in find_points(study, store.trials()).points}
    costs = [trial.settings for trial in study.search.trials_of({"k": 2})[:2]]
    assert costs[0].task.name != costs[1].task.name
    assert found[2].measured["max_length"] == {0: 6.5, 1: 8.5}
    assert (found[2].mean("max_length"), found[2].seeds, found[2].is_comparable) == (7.5, 2, True)
    assert (found[4].mean("max_length"), found[4].is_comparable) == (None, False)


def test_trials_of_another_study_fit_on_every_task(study, store):
    other = load_study(replaced(SEARCH, ('name = "tiny"', 'name = "other"')))
    factors = [json.loads(text) for text in reusable_outcomes(other, store.trials())["factors"]]
    assert sorted((each["k"], each["task"], each["seed"]) for each in factors) == [
        (kernel, task, seed) for kernel in (2, 3) for task in ("not", "sort") for seed in (0, 1)
    ]


def test_a_plan_names_models_by_the_factors_that_a_search_is_across(tmp_path):
    text = study_text(
        model={"recipe": "{mixer} >> ff({width})"},
        task={"name": "sort"},
        search={"trials": 9, "metric": "loss", "across": ["mixer"]},
        space={"width": "integer(2, 9)"},
        factors={"mixer": ["sa", "gru"], "task": None, "seed": [0]},
    )
    plan = make_plan(load_study(text), Store(tmp_path), memory=None)
    assert [model.label for model in plan.models] == [
        "mixer=sa, width=2", "mixer=gru, width=2", "mixer=sa, width=9", "mixer=gru, width=9"
    ]  # fmt: skip


def test_a_plan_counts_stored_trials_beyond_those_of_the_search(store):
    fewer = load_study(replaced(SEARCH, ("trials = 9", "trials = 1")))
    told = " ".join(str(make_plan(fewer, store)).split())
    assert "= 6 trials · 11 in the store, 5 more than planned · " in told


def test_a_search_is_across_its_factors(golden):
    with pytest.raises(StudyError, match="unknown factor 'tasks'; nearest: task"):
        load_study(replaced(SEARCH, ('across = ["task"]', 'across = ["tasks"]')))
    with golden.raises(StudyError):
        load_study(replaced(SEARCH, ('across = ["task"]', 'across = ["task", "task"]')))


def test_a_baseline_of_5_0_is_the_point_of_5(study):
    written = load_study(replaced(SEARCH, ("k = 5", "k = 5.0")))
    assert written.search.trials_of(written.search.baseline) == study.search.trials_of(study.search.baseline)


@pytest.mark.parametrize(
    "override",
    [
        "study.baseline.k=[5]",
        "study.baseline.k=4",
        "search.budget={}",
    ],
)
def test_lists_steps_that_miss_and_empty_budgets_are_refused(override, golden):
    with pytest.raises(StudyError) as caught:
        load_study(replaced(SEARCH, ("integer(2, 9)", "integer(3, 9, step=2)")), [override])
    golden([fault.message for fault in caught.value.faults])
