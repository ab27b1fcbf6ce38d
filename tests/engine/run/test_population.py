"""A population is trained generation by generation, and what it does follows from the rows of its store."""

import json
from itertools import pairwise

import polars as pl
import pytest
import torch

from activemem.engine.probes.trained_models import trained_trials
from activemem.engine.run.driver import run_study
from activemem.engine.trial.training import Training
from activemem.storage import Store
from activemem.studies.planning.population import generations, member_levels, member_trials, passed_trials
from activemem.studies.rounds import follow_rounds
from activemem.studies.searches.points import find_points
from activemem.studies.study import load_study

from ...study_texts import POPULATION

COLUMNS = ("trial", "status", "factors", "settings", "epochs", "steps", "flops")


def run(folder, *overrides, **options):
    """Run the population; its store."""
    store = Store(folder)
    run_study(load_study(POPULATION, overrides), store, local=True, **options)
    return store


def measured(store):
    """All that does not depend on time, and not on what a trial has gone on from."""
    metrics = store.metrics().filter(pl.col("name") != "tokens_per_s")
    return store.trials().select(COLUMNS).rows(), metrics.select("trial", "epoch", "name", "value").rows()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The store of a population that nobody disturbed."""
    torch.set_num_threads(1)
    return run(tmp_path_factory.mktemp("whole"))


def test_the_worst_go_on_from_the_best_with_other_settings(whole):
    study, rows = load_study(POPULATION), {row["trial"]: row for row in whole.trials().iter_rows(named=True)}
    found = generations(study, whole.trials())
    assert len(found) == 3
    assert len(rows) == 12
    for number, (before, after) in enumerate(pairwise(found), 1):
        best, *_, worst = before.ranked
        for place, member in enumerate(after.members):
            assert member.parent == (best if place == worst else place)
            assert (member.history[-1] != member.history[-2]) == (place == worst)
            [trial] = member_trials(study, number, member)
            [parent] = member_trials(study, number - 1, before.members[member.parent])
            assert rows[trial.id]["continued_from"] == parent.id
            assert rows[trial.id]["continued_after"] == number
    assert whole.final_checkpoints() == frozenset()
    assert whole.check().findings == ()
    assert len(follow_rounds(study, whole).trials) == 12


def test_a_member_that_has_copied_another_is_its_training_with_other_settings(whole):
    study = load_study(POPULATION)
    last = generations(study, whole.trials())[-1]
    [member] = [each for each in last.members if each.history[-1] != each.history[-2]]
    [trial] = member_trials(study, 2, member)
    training = Training(trial.settings, torch.device("cpu"))
    course = [training.advance() for _ in range(3)]
    stored = whole.metrics([trial.id]).filter(name="loss").sort("epoch")["value"].to_list()
    assert [each["loss"] for each in course] == stored


def test_a_member_that_nothing_changes_is_the_trial_of_its_values(whole):
    study = load_study(POPULATION)
    *_, last = generations(study, whole.trials())
    plain = POPULATION.replace("population", "plain").partition("[search]")[0]
    unchanged = [each for each in last.members if each.history[0] == each.history[-1]]
    assert unchanged
    for member in unchanged:
        values = member.history[0]
        changes = [f"factors.lr=[{values['lr']}]", f"factors.decay=[{values['decay']}]"]
        assert member_trials(study, 2, member)[0].id == load_study(plain, changes).trials[0].id


def test_a_run_that_ends_midway_goes_on_to_the_same_rows(whole, tmp_path):
    ran = [run(tmp_path, max_trials=each) for each in (3, 3, 5)]
    for trial in (store := ran[-1]).final_checkpoints():  # what is lost is trained again
        store.final_checkpoint_file(trial).unlink()
        break
    assert measured(run(tmp_path)) == measured(whole)


def test_rows_in_any_order_tell_the_same_generations(whole):
    study, rows = load_study(POPULATION), whole.trials()
    assert generations(study, rows.reverse()) == generations(study, rows)
    assert [len(generations(study, rows.head(count))) for count in (0, 12)] == [1, 3]


def test_points_are_the_members_of_the_last_generation(whole):
    study = load_study(POPULATION)
    found, last = find_points(study, whole.trials()), generations(study, whole.trials())[-1]
    members = [last.members[place] for place in last.ranked]
    assert [point.values for point in found.ranked()] == [member_levels(study, each) for each in members]
    assert [point.mean("loss") for point in found.ranked()] == sorted(last.losses)
    best = found.ranked()[0]
    levels = json.loads(whole.trials().filter(trial=best.trials[0])["factors"].item())
    assert {name: levels[name] for name in best.values} == best.values


KEEPING = "study.keep_weights=true"


def last_trials(store, overrides=()):
    """The trials of the last generation whose members have all ended, and those of the one under way."""
    study = load_study(POPULATION, overrides)
    found = generations(study, store.trials())
    last = max(number for number, each in enumerate(found) if each.is_whole)
    return [
        {trial.id for member in found[number].members for trial in member_trials(study, number, member)}
        for number in range(last, len(found))
    ]


def test_weights_are_kept_of_the_last_whole_generation_alone(whole, tmp_path):
    ran = [run(tmp_path, KEEPING, max_trials=each) for each in (4, 2)]
    stored = set((store := ran[-1]).trials()["trial"])
    last, under_way = last_trials(store)
    assert store.trials_with_weights(stored) == last | (under_way & stored)
    assert (len(stored), len(under_way & stored)) == (6, 2)
    store = run(tmp_path, KEEPING)
    assert measured(store) == measured(whole)
    (last,) = last_trials(store)
    stored = set(store.trials()["trial"])
    assert store.trials_with_weights(stored) == last
    probed = trained_trials(follow_rounds(load_study(POPULATION, [KEEPING]), store), store)
    assert {each.trial.id for each in probed} == last
    first = min(stored - last)
    copy = store.root / "weights" / f"{first}.safetensors"  # of a run that was killed before it was removed
    copy.write_bytes(store.weights_file(next(iter(last))).read_bytes())
    run(tmp_path, KEEPING)
    assert store.trials_with_weights(stored) == last


def test_a_population_that_keeps_all_states_keeps_all_weights(tmp_path):
    store = run(tmp_path, KEEPING, "study.keep_checkpoints=true")
    trials = set(store.trials()["trial"])
    assert store.trials_with_weights(trials) == store.final_checkpoints() == trials


def test_nothing_is_removed_of_members_after_which_all_have_failed(whole):
    study, rows = load_study(POPULATION), whole.trials()
    (last,) = last_trials(whole)
    failed = pl.col("trial").is_in(list(last))
    died = rows.with_columns(status=pl.when(failed).then(pl.lit("failed")).otherwise("status"))
    _, before, _ = generations(study, rows)
    passed = passed_trials(study, died)
    assert len(passed) == 4
    assert not {trial.id for member in before.members for trial in member_trials(study, 1, member)} & set(
        passed
    )
    assert len(passed_trials(study, rows)) == 8
    assert passed_trials(load_study(POPULATION, ["study.keep_checkpoints=true"]), rows) == []
