"""A study in the calling process: only missing trials run."""

import errno
import os
import pickle
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

from activemem import load_study, run_study
from activemem.engine import Machine, Summary
from activemem.engine.core.events import NOBODY
from activemem.engine.core.models import read_model_file
from activemem.engine.core.process import Stop
from activemem.engine.run.search.conformance import STUDY
from activemem.engine.run.trial_source import GridTrials
from activemem.engine.trial.failures import MachineError
from activemem.engine.trial.outcome import Job
from activemem.engine.trial.training import Training
from activemem.storage import Store, StoreError
from activemem.storage.store_upkeep import StoreUpkeep

from ...event_factories import make_event
from ...forked_commands import run_program


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


def run(study, store, notes, **options):
    return run_study(study, store, Machine(), notes, local=True, **options)


def summary(**counts):
    return Summary(**{"done": 0, "failed": 0, "pruned": 0, "ran": 0, "left": 0} | counts)


def test_a_store_that_cannot_be_written_is_refused_before_anything_trains(tiny, tmp_path):
    (tmp_path / "results").symlink_to(tmp_path / "missing")
    with pytest.raises(StoreError, match="results cannot be stored here"):
        run(load_study(tiny), tmp_path / "results" / "store", NOBODY)


def test_a_study_runs_once_and_then_not_again(tiny, store, notes):
    study = load_study(tiny)
    assert run(study, store, notes) == summary(done=8, ran=8)
    before = store.trials()
    assert run(study, store, notes) == summary(done=8)
    assert store.trials().equals(before)
    assert {trial.id for trial in notes.announced} == {trial.id for trial in study.trials}


def test_a_run_trains_at_most_the_requested_number_of_trials(tiny, store, notes):
    assert run(load_study(tiny), store, notes, max_trials=3) == summary(done=3, ran=3, left=5)
    assert run(load_study(tiny), store, notes, max_trials=3) == summary(done=6, ran=3, left=2)


def test_a_second_ctrl_c_ends_a_run_even_if_compiled_code_wraps_it(tiny, store, notes):
    def insist(event):
        signal.raise_signal(signal.SIGINT)
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise TypeError("an unprintable object") from None

    notes.hear = insist
    with pytest.raises(KeyboardInterrupt):
        run(load_study(tiny), store, notes)


def test_a_second_ctrl_c_that_strikes_where_errors_are_ignored_ends_a_run_without_a_traceback(
    tiny, store, notes, capfd
):
    class Struck:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    def insist(event):
        signal.raise_signal(signal.SIGINT)
        Struck()
        time.sleep(60)

    notes.hear = insist
    with pytest.raises(KeyboardInterrupt):
        run(load_study(tiny), store, notes)
    assert "Traceback" not in capfd.readouterr().err


def test_a_broken_pyarrow_is_reported_before_a_trial_trains(tiny, store, notes, monkeypatch, golden):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with golden.raises(MachineError):
        run(load_study(tiny), store, notes)
    assert not notes.announced


def test_results_that_are_removed_during_a_run_are_reported_at_its_end(tiny, store, notes):
    def remove_once(event):
        if event.kind == "ended" and store.records.load("tiny"):
            shutil.rmtree(store.root)

    notes.hear = remove_once
    with pytest.raises(MachineError, match="were removed during the run"):
        run(load_study(tiny), store, notes)
    assert run(load_study(tiny), store, NOBODY).left == 0


def test_a_trial_of_another_study_is_not_run_again(tiny, store, notes):
    run(load_study(tiny), store, notes)
    other = load_study(tiny.replace('name = "tiny"', 'name = "other"').replace("[0, 1]", "[1, 2]"))
    assert run(other, store, notes) == summary(done=8, ran=4)


def test_failed_trials_are_tried_again_only_when_asked(tiny, store, notes):
    study = load_study(tiny, ["train.optimizer.lr=1e30", 'train.optimizer.name="sgd"'])
    assert run(study, store, notes) == summary(failed=8, ran=8)
    assert run(study, store, notes) == summary(failed=8)
    assert run(study, store, notes, retry_failed=True) == summary(failed=8, ran=8)
    assert {attempt for _, attempt in store.latest_attempts().values()} == {1}


def test_a_folder_whose_name_is_not_utf8_keeps_the_record_of_its_study(tiny, store, notes, tmp_path):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    folder.mkdir()
    (folder / "tiny.toml").write_text(tiny, encoding="utf-8")
    run(load_study(folder / "tiny.toml"), store, notes, max_trials=1)
    assert store.records.load("tiny")["path"] == f"{tmp_path}/\\xff/tiny.toml"


def test_ctrl_c_is_raised_once_the_run_has_ended_in_order(tiny, store, notes):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)

    def interrupt(event):
        if len(notes.of("epoch")) == 6 and event.kind == "epoch":
            signal.raise_signal(signal.SIGINT)

    notes.hear = interrupt
    with pytest.raises(KeyboardInterrupt):
        run(load_study(tiny), store, notes)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    notes.hear = lambda event: None
    assert run(load_study(tiny), store, notes) == summary(done=8, ran=7)
    assert [event.run.epoch for event in notes.of("started")] == [0, 0, 2, *[0] * 6]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["SIGTERM", "a closed terminal"])
def test_a_signal_ends_a_program_once_the_run_has_ended_in_order(tiny, tmp_path, notes, number):
    program = tmp_path / "program.py"
    program.write_text(
        f"""
import signal
from activemem import load_study, run_study

def terminate(event):
    if event.kind == "epoch" and event.run.epoch == 1:
        signal.raise_signal({number.value})

run_study(load_study({tiny!r}), "results", listener=terminate, local=True)
print("the program continues")
""",
        encoding="utf-8",
    )
    ended = run_program(program, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (-number, "")
    assert run(load_study(tiny), Store(tmp_path / "results"), notes) == summary(done=8, ran=8)
    assert notes.of("started")[0].run.epoch == 1


@pytest.mark.usefixtures("returning_handlers")
def test_a_stop_ends_after_the_epoch_under_way_and_the_next_run_continues(tiny, store, notes):

    def interrupt(event):
        if len(notes.of("epoch")) == 6 and event.kind == "epoch":
            os.kill(os.getpid(), signal.SIGINT)

    notes.hear = interrupt
    stopped = run(load_study(tiny), store, notes)
    assert stopped == summary(done=1, ran=1, left=7, stop_signal=signal.SIGINT)
    assert stopped.stopped
    assert len(notes.of("epoch")) == 6
    notes.hear = lambda event: None
    assert run(load_study(tiny), store, notes) == summary(done=8, ran=7)
    assert [event.run.epoch for event in notes.of("started")] == [0, 0, 2, *[0] * 6]
    assert len(notes.of("ended")) == 8


def test_the_store_remembers_the_study_as_it_was_run(tiny, store, notes):
    run(load_study(tiny, ["train.epochs=1"]), store, notes)
    record = store.records.load("tiny")
    assert (record["text"], record["overrides"]) == (tiny, ["train.epochs=1"])
    assert store.records.latest() == "tiny"


def test_a_few_trials_more_are_suggested_than_there_are_workers_which_begin_side_by_side(tiny):
    from activemem.engine.run.ray_cluster import READY, TrialSearcher
    from activemem.engine.run.ray_connection import RAY_ENVIRONMENT

    jobs = [Job(trial=trial, attempt=0, run="run") for trial in load_study(tiny).trials]
    assert len(jobs) > 2 + READY + 1
    searcher = TrialSearcher(GridTrials(jobs), Stop(), NOBODY, count_workers=lambda: 2)
    found = [searcher.suggest(f"{number}") for number in range(2 + READY + 1)]
    assert [each is None for each in found] == [*[False] * (2 + READY), True]
    assert {name: found[0][name] for name in ("mixer", "seed")} == {
        name: jobs[0].trial.levels[name] for name in ("mixer", "seed")
    }
    searcher.on_trial_complete("1", {"events": []})
    assert searcher.suggest("again")
    assert searcher.suggest("none") is None
    assert int(RAY_ENVIRONMENT["TUNE_MAX_PENDING_TRIALS_PG"]) >= 1000


def test_ends_are_told_once_also_those_that_tune_has_not_read(tiny, store, notes):
    from activemem.engine.run.ray_cluster import EventCallback, TrialSearcher

    run(load_study(tiny), store, NOBODY, max_trials=2)
    ended = set(store.trials()["trial"])
    pruned, unread = (
        [Job(trial=one, attempt=0, run="run")] for one in load_study(tiny).trials if one.id in ended
    )

    class Pruning(GridTrials):
        def job_ended(self, job, *, paused_at):
            return [make_event("ended", trial=pruned[0].trial.id, status="pruned")]

    searcher = TrialSearcher(Pruning(pruned), Stop(), notes, count_workers=lambda: 1)
    searcher.suggest("0")
    searcher.on_trial_complete("0", {})
    searcher.handed_out |= {job.trial.id: job for job in unread}
    EventCallback(searcher, store).tell_unheard_ends()
    told = [(each.run.trial, each.run.status) for each in notes.events if each.kind == "ended"]
    assert told == [(pruned[0].trial.id, "pruned"), (unread[0].trial.id, "done")]


def test_pickles_of_tune_do_not_contain_the_listener(store):
    from activemem.engine.run.ray_cluster import EventCallback, TrialSearcher

    listener = threading.Lock()  # cannot be pickled, as a display on a terminal cannot
    searcher = TrialSearcher(GridTrials([]), Stop(), listener)
    for held in (searcher, EventCallback(searcher, store)):
        assert vars(pickle.loads(pickle.dumps(held))) == {}


def test_a_study_that_keeps_weights_trains_again_what_another_has_trained_without(tiny, store, notes):
    run(load_study(tiny), store, notes, max_trials=2)
    keeping = load_study(tiny.replace('name = "tiny"', 'name = "keeping"\nkeep_weights = true'))
    assert run(keeping, store, notes, max_trials=3) == summary(done=3, ran=3, left=5)
    kept = [trial for trial in keeping.trials if store.files.weights_file(trial.id).exists()]
    assert len(kept) == 3
    training = Training.begin(kept[0].settings, torch.device("cpu"))
    while not training.finished:
        training.advance()
    held = read_model_file(store.files.weights_file(kept[0].id)).weights
    assert held.keys() == training.weights().keys()
    assert all(torch.equal(held[name], weight) for name, weight in training.weights().items())
    assert run(keeping, store, notes) == summary(done=8, ran=5)


@pytest.mark.usefixtures("returning_handlers")
def test_ctrl_c_while_files_are_merged_lets_the_merge_finish(tiny, store, notes, monkeypatch):
    merge = StoreUpkeep.compact

    def interrupted(self):
        signal.raise_signal(signal.SIGINT)
        return merge(self)

    monkeypatch.setattr(StoreUpkeep, "compact", interrupted)
    assert run(load_study(tiny), store, notes) == summary(done=8, ran=8, stop_signal=signal.SIGINT)
    assert len(list((store.root / "trials" / "tiny").iterdir())) == 1


def test_a_disk_on_which_nothing_can_be_merged_leaves_all_outcomes(tiny, store, notes, monkeypatch):
    def full(self):
        raise OSError(errno.ENOSPC, "No space left on device")

    study = load_study(tiny)
    with monkeypatch.context() as patched:
        patched.setattr(StoreUpkeep, "compact", full)
        with pytest.raises(MachineError, match="No space left on device"):
            run(study, store, notes)
    assert run(study, store, notes) == summary(done=8)


def test_a_search_leaves_no_thread_and_no_filter_of_warnings(tiny, store, tmp_path):
    script = tmp_path / "search.py"
    text = f"""
import threading, warnings
import optuna
from activemem import load_study, run_study
before = list(warnings.filters)
run_study(load_study({STUDY!r}), {str(store.root)!r}, local=True)
print([each.name for each in threading.enumerate()], list(warnings.filters) == before)
"""
    script.write_text(text, encoding="utf-8")
    done = run_program(script)
    assert done.stdout.splitlines()[-1] == "['MainThread'] True", done.stderr
