"""The order in which a run starts the trials of a grid."""

import os
import signal

import pytest

from activemem import StudyError, load_study, run_study
from activemem.engine import Machine
from activemem.engine.run.trial_source import GridTrials
from activemem.engine.trial.checkpoints import Checkpoint
from activemem.engine.trial.outcome import Job
from activemem.storage import Store
from activemem.studies.planning.trials_to_run import select_shard, start_turns

from ...study_texts import study_text


def grid(mixers=("conv(k=3)", "sa(heads=1, head_width=4)"), seeds=(0, 1), **keys):
    factors = {"mixer": list(mixers), "task": ["not"], "seed": list(seeds)}
    return load_study(study_text(study=keys, factors=factors, train={"epochs": 1, "steps_per_epoch": 1}))


def started(study, store, notes, **options):
    """Train the missing trials; return the mixer and seed of each, in order of their starts."""
    before, trials = len(notes.of("started")), {trial.id: trial.levels for trial in study.trials}
    run_study(study, store, Machine(), notes, local=True, **options)
    levels = [trials[event.run.trial] for event in notes.of("started")[before:]]
    return [(each["mixer"].split("(")[0], each["seed"]) for each in levels]


def test_a_run_cut_short_has_one_seed_of_every_cell(tmp_path, notes):
    study, store = grid(seeds=(7, 3)), Store(tmp_path)
    assert started(study, store, notes, max_trials=2) == [("conv", 7), ("sa", 7)]
    assert started(study, store, notes) == [("conv", 3), ("sa", 3)]


@pytest.mark.usefixtures("returning_handlers")
def test_a_run_that_is_interrupted_first_completes_the_seed_it_was_at(tmp_path, notes):
    study, store = grid(), Store(tmp_path)

    def interrupt(event):
        if event.kind == "ended" and len(notes.of("ended")) == 1:
            os.kill(os.getpid(), signal.SIGINT)

    notes.hear = interrupt
    assert started(study, store, notes) == [("conv", 0)]
    notes.hear = lambda event: None
    assert started(study, store, notes) == [("sa", 0), ("conv", 1), ("sa", 1)]


@pytest.mark.parametrize("order", ["seeds_last", "file"])
def test_trials_that_an_earlier_run_has_begun_come_first_and_count_in_max_trials(tmp_path, notes, order):
    study, store = grid(order=order), Store(tmp_path)
    for trial in (study.trials[1], study.trials[3]):
        Checkpoint(store, trial.id).record_start(trial.to_json(), "earlier", "0")
        Checkpoint(store, trial.id).record_stop()
    assert started(study, store, notes, max_trials=2) == [("conv", 1), ("sa", 1)]


def test_the_order_of_the_file_trains_all_seeds_of_a_cell_first(tmp_path, notes):
    found = started(grid(order="file"), Store(tmp_path), notes, max_trials=2)
    assert found == [("conv", 0), ("conv", 1)]


def test_the_order_changes_neither_trials_nor_their_ids():
    by_seed, by_file = ([trial.id for trial in grid(order=order).trials] for order in ("seeds_last", "file"))
    assert by_seed == by_file
    assert [trial.levels["seed"] for trial in grid().trials] == [0, 1, 0, 1]


def test_a_shard_starts_its_trials_in_the_order_of_the_grid(tmp_path, notes):
    study = grid(mixers=[f"conv(k={k})" for k in range(2, 8)])
    share = select_shard(study, "1/2")
    run_study(study, Store(tmp_path), Machine(), notes, local=True, trial_ids=share)
    seeds = {trial.id: trial.levels["seed"] for trial in study.trials if trial.id in share}
    assert [seeds[event.run.trial] for event in notes.of("started")] == sorted(seeds.values())


def test_several_workers_start_the_largest_trials_of_a_seed_first():
    study = grid(mixers=["conv(k=2)", "conv(k=30)", "conv(k=9)"])
    turns = start_turns(study)
    jobs = [Job(trial=trial, attempt=0, run="run", turn=turns[trial.id]) for trial in study.trials]
    source, order = GridTrials(jobs, work=lambda trial: trial.settings.model.recipe.count("0")), []
    while (job := source.next_job(2)) is not None:
        order.append((job.trial.levels["seed"], job.trial.levels["mixer"]))
    assert [seed for seed, _ in order] == [0, 0, 0, 1, 1, 1]
    assert [mixer for _, mixer in order][::3] == ["conv(k=30)"] * 2


def test_seeds_that_a_run_adds_come_after_those_of_the_file():
    study = grid(max_seeds=3).with_later_seeds()
    turns = start_turns(study)
    assert sorted((turns[trial.id], trial.levels["seed"]) for trial in study.trials) == [
        (0, 0), (0, 0), (1, 1), (1, 1), (2, 2), (2, 2),
    ]  # fmt: skip


def test_an_unknown_order_is_refused_with_the_nearest():
    with pytest.raises(StudyError, match="'seeds_last' or 'file', got 'seed_last'; nearest: seeds_last"):
        grid(order="seed_last")


def test_a_search_chooses_its_own_order(golden):
    text = study_text(
        study={"order": "file"},
        model={"recipe": "conv(k={k})"},
        task={"name": "not"},
        search={"metric": "max_length", "trials": 3},
        space={"k": "integer(2, 5)"},
    )
    with golden.raises(StudyError):
        load_study(text)
