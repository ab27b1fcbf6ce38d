"""A search stores all state in the store, and trains no point twice."""

import json
import warnings

import pytest

from activemem import load_study, run_study
from activemem.engine import Machine
from activemem.engine.core.events import NOBODY
from activemem.engine.run.search.search import Search
from activemem.engine.run.worker import Worker
from activemem.engine.trial.checkpoints import Checkpoint
from activemem.storage import MetricRow, Store, TrialRow
from activemem.storage import read as read_module
from activemem.storage import store as store_module
from activemem.storage.trial_files import write_note
from activemem.studies import find_points, make_plan, study_status
from activemem.studies.planning.status import stored_outcomes, study_outcomes
from activemem.studies.planning.trials_to_run import stored_part

from ....study_texts import study_text

SEARCH = study_text(
    study={"name": "search", "title": "A kernel and a dropout"},
    model={"recipe": "conv(k={k}) >> ff(8)", "dropout": "{dropout}"},
    task={"name": "addition"},
    train={"optimizer": {"name": "adam", "lr": 0.01}, "batch_size": 8, "epochs": 8, "steps_per_epoch": 5},
    factors={"seed": [0, 1]},
    search={"sampler": "random", "trials": 6, "metric": "accuracy", "direction": "max"},
    space={"k": "integer(2, 5)", "dropout": "real(0.0, 0.5)"},
)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


SHORT = SEARCH.replace("epochs = 8", "epochs = 1").replace("steps_per_epoch = 5", "steps_per_epoch = 1")


def run(text, store, notes, overrides=(), **options):
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", category=UserWarning, module="optuna"
        )  # samplers marked experimental
        return run_study(load_study(text, overrides), store, Machine(), notes, local=True, **options)


def points(store):
    return {
        tuple(value for name, value in json.loads(text).items() if name != "seed")
        for text in store.trials()["factors"]
    }


@pytest.mark.parametrize("sampler", ["tpe", "gp_trees"])
def test_a_search_trains_each_of_its_points_on_every_seed(store, notes, sampler):
    done = run(SHORT, store, notes, [f"search.sampler={sampler}"])
    assert (done.done, done.ran, done.left) == (12, 12, 0)
    assert len(points(store)) == 6
    assert set(store.trials()["seed"]) == {0, 1}


def test_a_search_begins_with_its_baseline_on_seeds_of_its_own(store, notes):
    text = SHORT.replace("[model]", "baseline = { k = 3, dropout = 0.25 }\nbaseline_seeds = 3\n[model]", 1)
    first = run(text, store, notes, max_trials=3)
    assert (first.done, first.left) == (3, 10)
    assert (points(store), sorted(store.trials()["seed"])) == ({(3, 0.25)}, [0, 1, 2])
    done = run(text, store, notes)
    assert (done.ran, done.left, len(points(store))) == (10, 0, 6)


def test_a_plan_counts_the_baseline_that_another_study_has_trained_as_the_run_does(store, notes, golden):
    keys = "baseline = { k = 3, dropout = 0.25 }\nbaseline_seeds = 3\n[model]"
    grid = study_text(
        model={"recipe": "conv(k={kernel}) >> ff(8)", "dropout": 0.25},
        task={"name": "addition"},
        train={"optimizer": {"name": "adam", "lr": 0.01}, "batch_size": 8, "epochs": 1, "steps_per_epoch": 1},
        factors={"kernel": [3], "seed": [0, 1, 2]},
    )
    assert run(grid, store, notes).ran == 3
    study = load_study(SHORT.replace("[model]", keys, 1))
    plan = make_plan(study, store)
    golden([str(plan).splitlines()[1], study_status(study, store).summary()])
    done = run_study(study, store, Machine(), notes, local=True)
    assert (done.ran, done.left, done.done) == (plan.left, 0, plan.total)
    assert make_plan(study, store).counts["done"] == plan.total


def test_a_search_with_a_new_baseline_trains_it_and_keeps_all_seeds_of_the_former(store, notes):
    text = SHORT.replace("[model]", "baseline = { k = 3, dropout = 0.25 }\nbaseline_seeds = 4\n[model]", 1)
    run(text, store, notes)
    changed = load_study(text, ["study.baseline.k=4"])
    plan = make_plan(changed, store)
    assert (plan.left, study_status(changed, store).left) == (4, 4)
    done = run_study(changed, store, Machine(), notes, local=True)
    assert (done.ran, done.left) == (4, 0)
    found = {tuple(each.values.values()): each for each in find_points(changed, store.trials()).points}
    assert [found[k, 0.25].seeds for k in (3, 4)] == [4, 4]
    assert all(each.is_comparable for each in found.values())
    assert make_plan(load_study(text), store).left == 0


def test_a_finished_search_asks_for_no_worker(store, notes):
    run(SHORT, store, notes)
    nowhere = Machine(address="127.0.0.1:1")  # no cluster is there
    again = run_study(load_study(SHORT), store, nowhere, notes)
    assert (again.done, again.ran, again.left) == (12, 0, 0)


def test_a_finished_search_runs_nothing_more(store, notes):
    run(SHORT, store, notes)
    assert run(SHORT, store, notes).ran == 0


def test_a_search_reads_each_row_once_however_many_points_it_has(store, notes, tmp_path, monkeypatch):
    readings, rows = [], []
    latest = store_module.read_latest
    monkeypatch.setattr(
        store_module, "read_latest", lambda *args, **more: readings.append(args) or latest(*args, **more)
    )
    add = read_module.LatestAttempts._add
    monkeypatch.setattr(
        read_module.LatestAttempts, "_add", lambda self, row: rows.append(row["trial"]) or add(self, row)
    )
    run(SHORT, store, notes, ["search.trials=2"])
    whole = len(readings)
    rows.clear()
    run(SHORT, Store(tmp_path / "more"), notes, ["search.trials=6"])
    assert len(readings) == 2 * whole  # for the run, not for its points
    assert len(rows) == len(set(rows)) == 6 * 2


def test_a_search_that_was_cut_off_takes_up_what_it_has(store, notes):
    assert run(SHORT, store, notes, max_trials=4).done == 4
    first = points(store)
    again = run(SHORT, store, notes)
    assert (again.done, again.ran) == (12, 8)
    assert first < points(store)


def test_a_point_that_was_left_unfinished_comes_first(store, notes):
    run(SHORT, store, notes, max_trials=4)
    unfinished = store.trials().row(0, named=True)
    path = next(store.root.glob("trials/**/*.parquet"))
    whole = len(store.trials())
    path.unlink()
    lost = whole - len(store.trials())
    again = run(SHORT, store, notes)
    assert again.done == 12
    assert again.ran == 8 + lost
    assert unfinished["trial"] in set(store.trials()["trial"])


def test_asha_judges_a_resumed_point_by_the_epochs_before_its_checkpoint(store, notes):
    changes = ["search.scheduler=asha", "train.epochs=40", "search.metric=max_length", "factors.seed=[0]"]
    study = load_study(SHORT, changes)
    job = Search(study, store, "killed", notes).next_job()
    folder = store.files.checkpoint_dir(job.trial.id)
    Checkpoint(store, job.trial.id).record_start(job.trial.to_json(), "killed", "here")
    course = [MetricRow(step=epoch, epoch=epoch, name="max_length", value=0.0) for epoch in range(1, 13)]
    write_note(folder, 12, {"max_length": 0.0}, course)
    again = Search(study, store, "again", notes)
    resumed, other = again.next_job(), again.next_job()
    assert (resumed.trial.id, resumed.until, other.until) == (job.trial.id, 16, 1)

    def pause(job, value):
        """Return the statuses that follow when a trial pauses with this value."""
        name = "max_length"
        values = [
            MetricRow(step=epoch, epoch=epoch, name=name, value=value) for epoch in range(1, job.until + 1)
        ]
        other_folder = store.files.checkpoint_dir(job.trial.id)
        other_folder.mkdir(exist_ok=True, parents=True)
        write_note(other_folder, job.until, {name: value}, values)
        return [event.run.status for event in again.job_ended(job, paused_at=job.until)]

    assert pause(other, 0.0) == [], "at epoch 1 the resumed point had 0, too"
    other = again.next_job()
    assert (pause(resumed, 5.0), other.until) == ([], 4)
    assert pause(other, 4.0) == []
    again.next_job()
    other = again.next_job()
    assert (other.until, pause(other, 4.0)) == (16, ["pruned"])


@pytest.mark.parametrize("keeps_note", [True, False])
def test_trials_of_a_point_that_a_crash_has_left_at_different_epochs_are_compared_at_the_same(
    store, notes, keeps_note
):
    asha = "search.scheduler={ name = 'asha', reduction = 2 }"
    changes = [asha, "train.epochs=4", "search.metric=loss", "search.direction=min", "search.trials=1"]
    study = load_study(SHORT, changes)
    killed, worker = Search(study, store, "killed", NOBODY), Worker(store, Machine())
    for number in range(3):  # one trial pauses after epoch 1, and the other one after epoch 2
        job = killed.next_job()
        epochs = [event.run.epoch for event in worker.train(job) if event.kind == "paused"]
        if number < 2:
            killed.job_ended(job, paused_at=epochs[0])
    if not keeps_note:  # as a kill may leave it
        (store.files.checkpoint_dir(job.trial.id) / "reached.json").unlink()
    summary = run_study(study, store, Machine(), notes, local=True)
    assert (summary.ran, summary.left) == (2, 0)
    assert sorted(event.run.epoch for event in notes.of("started")) == [1, 2]
    assert {event.run.trial for event in notes.of("epoch")} <= {
        event.run.trial for event in notes.of("started")
    }


def test_a_grid_search_visits_every_point_once(store, notes):
    text = SHORT.replace('dropout = "real(0.0, 0.5)"', 'dropout = "choice(0.0, 0.1)"').replace(
        "trials = 6", "trials = 50"
    )
    assert run(text, store, notes, ["search.sampler=grid"]).done == 16
    assert points(store) == {(k, dropout) for k in (2, 3, 4, 5) for dropout in (0.0, 0.1)}


def test_a_space_that_is_used_up_ends_the_search(store, notes):
    text = SHORT.replace('dropout = "real(0.0, 0.5)"', 'dropout = "choice(0.0)"')
    assert run(text, store, notes, ["search.trials=50"]).done == 8


CONDITIONAL = (
    SHORT.replace("conv(k={k}) >> ff(8)", "choice(ff(8), {mixer}, conv(k=integer(2, 3))) >> ff(8)")
    .replace('dropout = "{dropout}"', "dropout = 0.0")
    .replace('k = "integer(2, 5)"', 'k = "integer(4, 9, step=2)"')
    .replace('dropout = "real(0.0, 0.5)"', 'mixer = "choice(ff(8), highway_conv(k={k}))"')
    .replace("trials = 6", "trials = 50")
)


def recipes(store):
    return sorted(store.trials().filter(seed=0)["recipe"])


@pytest.mark.parametrize("sampler", ["tpe", "evolution", "gp_trees", "grid"])
def test_every_sampler_finds_all_of_a_conditional_space_once(store, notes, sampler):
    assert run(CONDITIONAL, store, notes, [f"search.sampler={sampler}", "factors.seed=[0]"]).done == 6
    assert recipes(store) == [
        "conv(k=2) >> ff(8)",
        "conv(k=3) >> ff(8)",
        "ff(8) >> ff(8)",
        *(f"highway_conv(k={k}) >> ff(8)" for k in (4, 6, 8)),
    ]


def test_only_the_active_dimensions_of_a_point_are_stored_and_reported(store, notes):
    run(CONDITIONAL, store, notes)
    stored = {tuple(json.loads(text)) for text in store.trials()["factors"]}
    assert stored - {("choice", "seed")} in (
        {("k", "mixer", "choice", "seed"), ("choice", "conv.k", "seed")},
        {("k", "mixer", "choice", "seed"), ("choice", "conv.k", "seed"), ("mixer", "choice", "seed")},
    )
    told = Search(load_study(CONDITIONAL), store, "again", notes)._optuna.studies[0].get_trials()
    assert len(told) == 6
    assert {(*trial.params, "seed") for trial in told} == stored
    assert all(trial.params.keys() == trial.distributions.keys() for trial in told)


def test_points_of_untaken_values_from_before_are_still_known(tmp_path, store, notes):
    run(CONDITIONAL, store, notes)
    before = Store(tmp_path / "before")
    for row in store.trials().to_dicts():
        untaken = {"choice": None, "mixer": "ff(8)", "k": 8, "conv.k": 3}
        factors = json.dumps({**untaken, **json.loads(row["factors"])})
        metrics = tuple((each["name"], each["value"]) for each in row["metrics"])
        before.write(TrialRow(**{**row, "factors": factors, "metrics": metrics}), [])
    assert run(CONDITIONAL, before, notes).ran == 0


@pytest.mark.parametrize("sampler", ["tpe", "grid"])
def test_points_over_the_budget_are_passed_over(store, notes, sampler):
    overrides = [f"search.sampler={sampler}", "factors.seed=[0]", 'study.limits.parameters="<= 500"']
    assert run(CONDITIONAL, store, notes, overrides).done == 3
    assert recipes(store) == ["conv(k=2) >> ff(8)", "conv(k=3) >> ff(8)", "ff(8) >> ff(8)"]
    assert store.trials()["parameters"].max() <= 500


def test_architectures_that_only_look_different_are_trained_once(store, notes):
    one = "choice(ff(8), conv(k=2))"
    text = CONDITIONAL.replace("choice(ff(8), {mixer}, conv(k=integer(2, 3)))", f"{one} + {one}")
    text = text[: text.index("[search.space]")]
    assert run(text, store, notes, ["factors.seed=[0]"]).done == 3


def test_asha_prunes_points_and_stores_what_they_reached(store, notes):
    overrides = [
        *("search.scheduler=asha", "search.trials=12", "search.metric=loss", "search.direction=min"),
        "train.steps_per_epoch=2",
    ]
    done = run(SEARCH, store, notes, overrides)
    assert done.pruned > 0
    assert done.done + done.pruned == 24
    pruned = store.trials().filter(status="pruned")
    assert set(pruned["reason"]) == {"pruned by asha"}
    assert pruned["epochs"].max() < 8
    assert len(store.metrics(pruned["trial"].to_list())) == 5 * pruned["epochs"].sum()
    assert not list(store.files.checkpoint_dir("0" * 16).parent.iterdir())
    assert len(notes.of("epoch")) == store.trials()["epochs"].sum()


def test_what_one_search_prunes_others_train_and_it_keeps_its_own_history(tmp_path, store, notes):
    def outcomes(place, changes):
        study = load_study(SEARCH, changes)
        found = study_outcomes(study, stored_outcomes(place, study))
        return sorted(found.select("trial", "status").iter_rows())

    pruning = ["search.scheduler=asha", "search.metric=loss", "search.direction=min"]
    plain, alone = (
        ["study.name=plain", "search.metric=loss", "search.direction=min"],
        Store(tmp_path / "alone"),
    )
    pruned = run(SEARCH, store, notes, pruning).pruned
    before = outcomes(store, pruning)
    assert pruned > 0
    assert outcomes(store, plain) == []

    assert run(SEARCH, store, notes, plain).ran == pruned
    assert run(SEARCH, alone, notes, plain).ran == 12
    assert outcomes(store, plain) == outcomes(alone, plain)
    assert outcomes(store, pruning) == before
    assert run(SEARCH, store, notes, pruning).ran == 0
    store.upkeep.forget("search", stored_part(load_study(SEARCH, pruning), store, ()))
    assert outcomes(store, pruning) == []
    assert outcomes(store, plain) == outcomes(alone, plain)


@pytest.mark.heavy
def test_a_search_that_is_continued_again_and_again_still_prunes_points(tmp_path, notes):
    overrides = [
        *("search.scheduler=asha", "search.trials=12", "search.metric=loss", "search.direction=min"),
        "train.steps_per_epoch=2",
    ]
    whole, parts = Store(tmp_path / "whole"), Store(tmp_path / "parts")
    at_once = run(SEARCH, whole, notes, overrides)
    while run(SEARCH, parts, notes, overrides, max_trials=4).ran:
        pass
    pruned = parts.trials().filter(status="pruned")
    assert len(parts.trials()) == 24
    assert at_once.pruned >= 12
    assert len(pruned) >= at_once.pruned - 4  # the sampler draws other points, not other rungs


def test_a_failed_point_does_not_stop_a_search(store, notes):
    overrides = ['train.optimizer={name="sgd", lr=1e30}']
    done = run(SEARCH, store, notes, overrides)
    assert (done.failed, done.ran) == (12, 12)


def test_a_point_that_another_study_has_trained_is_taken_from_there(store, notes):
    run(SHORT, store, notes)
    other = SHORT.replace('name = "search"', 'name = "other"')
    assert run(other, store, notes).ran == 0


def test_trials_of_another_study_become_a_point_once_it_is_proposed(store, notes):
    baseline = "baseline = { k = 3, dropout = 0.25 }\nbaseline_seeds = 3\n[model]"
    text = SHORT.replace("[model]", baseline, 1)
    run(text, store, notes)
    overrides = ["study.name=other", "search.trials=8"]
    done = run(text, store, notes, overrides)  # the same points, and two more
    assert (done.ran, done.done, done.left) == (4, 17, 0)
    other = load_study(text, overrides)
    outcomes = stored_outcomes(store, other)
    points = find_points(other, outcomes).points
    assert [each.is_comparable for each in points] == [True] * 8
    assert {each.values["k"]: each.seeds for each in points if each.values == other.search.baseline} == {3: 3}
    assert points[0].values == other.search.baseline  # in the order in which this search had them
    assert study_status(other, store, outcomes).left == 0
    assert len(find_points(load_study(text), store.trials()).points) == 6  # which keeps all of its own
    asked = [Search(other, store, run_, notes)._optuna.studies[0].get_trials() for run_ in ("a", "b")]
    assert [[each.params for each in trials] for trials in asked] == [
        [dict(each.values) for each in points],
    ] * 2
    assert run(text, store, notes, overrides).ran == 0


def test_a_point_of_which_another_study_has_trained_a_seed_has_all_of_its_seeds(store, notes):
    run(SHORT, store, notes, ["factors.seed=[0]", "search.trials=2"])
    overrides = ["study.name=other", "search.trials=2"]
    assert run(SHORT, store, notes, overrides).ran == 2
    other = load_study(SHORT, overrides)
    found = find_points(other, stored_outcomes(store, other))
    assert [each.seeds for each in found.complete] == [2, 2]
    assert study_status(other, store).left == 0


def test_a_search_with_a_renamed_dimension_keeps_its_points(store, notes):
    run(SHORT, store, notes)
    renamed = SHORT.replace("{dropout}", "{rate}").replace('\ndropout = "real', '\nrate = "real')
    before = study_status(load_study(SHORT), store).counts
    assert run(renamed, store, notes).ran == 0
    assert study_status(load_study(renamed), store).counts == before == {"done": 12}


def test_trials_of_another_study_do_not_count_in_a_budget(store, notes):
    run(SHORT, store, notes)
    overrides = ["study.name=other", "search.trials=8", "search.budget={trainings=3}"]
    assert run(SHORT, store, notes, overrides).ran == 4  # two points, of which the second was begun


def test_failed_points_are_tried_again_only_when_asked(store, notes):
    overrides = ['train.optimizer={name="sgd", lr=1e30}', "search.trials=1"]
    assert run(SEARCH, store, notes, overrides).failed == 2
    assert run(SEARCH, store, notes, overrides).ran == 0
    assert run(SEARCH, store, notes, overrides, retry_failed=True).ran == 2
    assert {attempt for _, attempt in store.latest_attempts().values()} == {1}


def test_points_of_another_task_are_not_taken_up(store, notes):
    overrides = ["search.trials=2", "factors.seed=[0]"]
    run(SHORT, store, notes, overrides)
    run(SHORT, store, notes, [*overrides, "task.name=sort", "search.seed=1"])
    of_task = {task: set(rows["factors"]) for (task,), rows in store.trials().group_by("task")}
    assert [len(each) for each in of_task.values()] == [2, 2]
    assert of_task["addition"].isdisjoint(of_task["sort"])


@pytest.mark.heavy
def test_evolution_resumes_from_the_store_as_if_uninterrupted(tmp_path, notes):
    overrides = ["search.sampler={ name = 'evolution', population = 3, sample = 2 }", "search.trials=9"]
    whole, parts = Store(tmp_path / "whole"), Store(tmp_path / "parts")
    run(SHORT, whole, notes, overrides)
    while run(SHORT, parts, notes, overrides, max_trials=4).ran:
        pass
    assert len(points(parts)) == 9
    assert points(parts) == points(whole)
