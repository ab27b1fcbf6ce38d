"""Driver of a study, which trains the missing trials, in this process or on Ray, until none is left."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import Any
from uuid import uuid4

from ...errors import argument_fault, check_arguments, hint, number_fault, texts_fault
from ...plugins import PluginError, inline_codes
from ...storage import Store, open_store, store_fault
from ...studies.catalog.own_corpora import FOLDER
from ...studies.evidence import seal_claims, state_claims
from ...studies.last_run import other_files
from ...studies.late_changes import seeds_before
from ...studies.planning.status import study_status
from ...studies.planning.time_estimates import TimeEstimator
from ...studies.planning.trials_to_run import (
    EarlierTrials,
    keeps_last_state,
    start_turns,
    trials_to_run,
)
from ...studies.resolve.data_fit import as_long_as_data
from ...studies.resolve.grid import check_layers
from ...studies.resolve.trial import Trial, code_owner, first_of_each_kind, other_code
from ...studies.schema.settings import TrialSettings
from ...studies.study import Study, study_fault
from ...studies.text.units import listed, plural
from ..core.events import Event, Listener, RunCounter, notebook_listener
from ..core.process import on_interrupt, restored_process
from ..core.resources import ONE_CPU, Machine
from ..core.run import Run
from ..core.start import describe_starts
from ..corpora.files import keep_files
from ..optimisers.build import check_groups
from ..trial.checkpoints import dies_often, record_stops
from ..trial.failures import MachineError, check_gpu, check_row_writer, lost_gpu, storing
from ..trial.outcome import Job
from ..trial.resumable_attempt import run_elsewhere
from ..trial.training_parts import check_watched
from .preflight import (
    check_bits_per_byte,
    check_device,
    check_memory,
    check_plugin_modules,
    check_test_lengths,
    prepare_corpora,
    rehearse_plugins,
)
from .trial_source import GridTrials, TrialSource
from .worker import run_local

MAX_NAMED_WIDTH = 100
"""The maximum number of characters of the unknown trials that a message names."""

BEGUN_TURN = -1
"""The turn of trials that an earlier run has begun; the rounds of a grid count from 0."""

MERGED_TOGETHER = 256
"""During a run, the files of this many ended trials are merged into one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Counts of a study's trials after a run.

    `done`, `failed` and `pruned` count the stored trials, `ran` those of this run, and `left` those still to
    train. `given_up` has the reasons for abandoned trials, whose workers died too often. `stop_reason` is
    set if `max_failures` ended the run, and `stop_signal` if a signal did, such as SIGINT (Ctrl-C).
    """

    done: int
    failed: int
    pruned: int
    ran: int
    left: int
    given_up: tuple[str, ...] = ()
    stop_reason: str | None = None
    stop_signal: signal.Signals | None = None

    @property
    def stopped(self) -> bool:
        """Return whether a signal ended the run."""
        return self.stop_signal is not None

    @property
    def is_cut_short(self) -> bool:
        """Return whether the run ended early: by a stop, by too many failures, or with abandoned trials."""
        return self.stopped or bool(self.given_up) or self.stop_reason is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunArguments:
    """The arguments of `run_study` that say which trials train, where, and how many."""

    local: bool | None = None
    max_trials: int | None = None
    max_failures: int | None = None
    retry_failed: bool = False
    trial_ids: Collection[str] | None = None
    callbacks: Sequence[Any] = ()


def run_study(
    study: Study,
    store: Store | str | Path,
    machine: Machine = ONE_CPU,
    listener: Listener | None = None,
    *,
    local: bool | None = None,
    max_trials: int | None = None,
    max_failures: int | None = None,
    retry_failed: bool = False,
    trial_ids: Collection[str] | None = None,
    callbacks: Sequence[Any] = (),
) -> Summary:
    """Train the missing trials of a study.

    With `max_trials`, train at most this many of them. `local` trains in this process (True) or on Ray
    (False). By default a grid trains here if its missing trials are so short that starting Ray is not worth
    it; the results are the same. `trial_ids` restricts a grid to these trials. The run ends once
    `max_failures` trials have failed in it. Without a `listener`, a notebook shows the progress.

    Each trial is also a trial of Ray Tune. `callbacks` are Tune's own, `ray.tune.Callback`, and are called in
    this process; with them, the trials train on Ray. A callback's exception ends the run after its trials are
    stored, and is raised here.

    Ctrl-C, SIGTERM and a closed terminal (SIGHUP) end the run cleanly: all steps so far are stored, and the
    same call resumes each trial from its last checkpoint. Then the signal goes to the program's own handler:
    without one, Ctrl-C raises KeyboardInterrupt, and the others end the process. If that handler returns, the
    summary is `stopped`.

    Failed trials count as outcomes. With `retry_failed` they are trained again; a trial that failed by a time
    limit resumes where it stopped. Any number of drivers may run one study on one store at the same time.
    Each driver trains trials that no other driver has claimed, waits for the rest, and takes over the trials
    of dead processes.

    Raise before anything trains:

    - StoreError: results cannot be stored.
    - PluginError: a block of a plug-in sees later tokens of a causal task, or raises an exception; or the
      code of a part was edited after the study was loaded.
    - ParameterGroupError, LossTermError: a group of weights or a loss term matches nothing in a model.
    - BuildError: the weights of a grid's cell are larger than this machine's memory.
    - TaskError: a model cannot read its test sequences.
    - PrecisionError: the device does not support a precision.
    - DataError: a corpus is missing or altered.

    Raise MachineError at any time if a GPU is missing or the machine fails, for example with a full disk.
    The trials that this stops get no outcome.
    """
    check_arguments(
        study_fault(study),
        store_fault(store),
        argument_fault("machine", machine, Machine),
        None if listener is None or callable(listener) else _listener_fault(listener),
        argument_fault("local", local, (bool, type(None)), "True, False or None"),
        number_fault("max_trials", max_trials, least=0, optional=True),
        number_fault("max_failures", max_failures, least=1, optional=True),
        argument_fault("retry_failed", retry_failed, bool, "True or False"),
        None if trial_ids is None else texts_fault("trial_ids", trial_ids, "[study.trials[0].id]"),
        callbacks_fault(callbacks, local=local),
    )
    store = open_store(store)
    check_arguments(_trials_fault(study, trial_ids))
    arguments = RunArguments(
        local=local,
        max_trials=max_trials,
        max_failures=max_failures,
        retry_failed=retry_failed,
        trial_ids=trial_ids,
        callbacks=tuple(callbacks),
    )
    summary = run_until_stopped(study, store, machine, listener, arguments)
    if summary.stop_signal is not None:
        sys.stdout.flush()
        sys.stderr.flush()
        signal.raise_signal(summary.stop_signal)
    return summary


def _listener_fault(listener: object) -> str:
    return f"listener: expected a function of one event, got {type(listener).__name__}"


def callbacks_fault(callbacks: Sequence[Any], *, local: bool | None) -> str | None:
    """Return an error message for values that are not callbacks of Ray Tune, else None."""
    if not isinstance(callbacks, Sequence) or isinstance(callbacks, str):
        return f"callbacks: expected a list of ray.tune.Callback, got {type(callbacks).__name__}"
    if not callbacks:
        return None
    if local:
        return (
            "callbacks: they are called by Ray Tune, which local=True does not start: leave out one of them"
        )
    from ray import tune  # noqa: PLC0415 -- loads slowly

    others = sorted({type(each).__name__ for each in callbacks if not isinstance(each, tune.Callback)})
    return f"callbacks: expected objects of ray.tune.Callback, got {listed(others)}" if others else None


def _trials_fault(study: Study, trial_ids: Collection[str] | None) -> str | None:
    """Return an error message for ids that no trial of the study has, else None."""
    if not trial_ids:
        return None
    if study.search is not None:
        return "trial_ids: a search has no trials to select, because they are not known in advance"
    known = {trial.id for trial in study.trials}
    unknown = [each for each in trial_ids if each not in known]
    if not unknown:
        return None
    named = shorten(", ".join(unknown), MAX_NAMED_WIDTH, placeholder=" …")
    return f"trial_ids: {study.name} has no trial {named}{hint(unknown[0], known) or ': see study.trials'}"


@restored_process()
def run_until_stopped(
    study: Study,
    store: Store,
    machine: Machine,
    listener: Listener | None,
    arguments: RunArguments,
) -> Summary:
    """Train the missing trials of a study, as `run_study` does, but return also after a signal.

    Other drivers may leave trials unfinished, for example because they died. This run then trains them.
    """
    store.check_writable(study.name)
    machine = replace(machine, address=None) if arguments.local else machine
    check_gpu(machine)
    check_row_writer()
    listener = listener or notebook_listener(study, store, arguments.max_trials)
    store.make()
    store.verify_study(study.name)
    search, run_id = study.search, uuid4().hex
    jobs = _missing_jobs(study, store, run_id, arguments) if search is None else []
    missing = [job.trial for job in jobs] if search is None else search.trials_of_options()
    _check_code(study, (*missing, *search.baseline_trials) if search else missing)
    check_layers(study, missing)
    settings = [trial.settings for trial in missing]
    if search is None and machine.address is None:
        check_memory(study, missing)
    local = _here_if_inline(settings, machine, local=False if arguments.callbacks else arguments.local)
    _prepare(study, settings, machine)
    if local is None:
        local = search is None and _is_short(study, store, machine, listener, jobs[: arguments.max_trials])
    arguments = replace(arguments, local=local)
    store.records.save(study.name, _record(study, store))
    with on_interrupt(partial(listener, Event(kind="stopping"))) as stop:
        merge = partial(store.upkeep.merge_ended, study.name, at_least=MERGED_TOGETHER)
        counter = RunCounter(listener, stop, arguments.max_failures, merge)
        running = _Run(study, store, machine, counter, arguments, run_id, settings)
        try:
            given_up = running.train_grid(jobs) if search is None else running.train_search()
        finally:
            if lost_gpu() is None:  # otherwise the trial with the failed kernel counts as a death
                record_stops(store, counter.unended)
        if counter.machine_failure is not None:
            raise MachineError(counter.machine_failure)
        with storing():  # all outcomes are stored by now, and the next run can merge their files
            has_record = store.records.load(study.name) is not None
            if not has_record and len(store.latest_attempts()) < counter.ended.total():
                where = store.absolute_place
                raise MachineError(f"the results in {where} were removed during the run")
            store.upkeep.compact()
            seal_claims(study, store)
        summary = _summary(study, store, counter, given_up)
    return replace(summary, stop_signal=stop.stop_signal)


def _check_code(study: Study, trials: Sequence[Trial]) -> None:
    """Raise PluginError if code that these trials need was edited after the study was loaded."""
    kinds = first_of_each_kind([trial for trial in trials if trial.common.code])
    if edited := sorted({what for trial in kinds for what in other_code(trial.common)}):
        raise PluginError(
            f"the code of {listed(edited)} was edited since the study {study.name} was loaded: "
            "load it again with load_study, and run what this returns"
        )


def _here_if_inline(
    settings: Iterable[TrialSettings], machine: Machine, *, local: bool | None
) -> bool | None:
    """Return True if a script or a notebook has registered parts of these trials, otherwise `local`.

    Such trials can only train in this process. Raise PluginError if they are to train on Ray.
    """
    inline = {code for each in settings for code in each.code.values()} & inline_codes()
    if not inline:
        return local
    if local is False or machine.address is not None:
        owners = listed(sorted({code_owner(code) for code in inline}))
        raise PluginError(
            f"Ray's workers do not run {owners}, so they lack what is registered there: "
            "train with local=True, or put these parts into a plug-in file and load it with load_plugin"
        )
    return True


def _prepare(study: Study, settings: Sequence[TrialSettings], machine: Machine) -> None:
    check_groups(settings)
    check_watched(settings)
    check_plugin_modules(settings)
    check_test_lengths(settings)
    check_device(settings, machine)
    if study.own_corpus is not None:
        keep_files(study.own_corpus.files, machine.data / FOLDER)
    describe_starts(settings, lambda sha256: machine.data / FOLDER / sha256)
    prepare_corpora(settings, machine.data)
    goals = [goal.name for goal in study.search.settings.objectives] if study.search else []
    check_bits_per_byte(settings, goals, machine.data)
    rehearse_plugins(settings, machine.data)


def _is_short(study: Study, store: Store, machine: Machine, listener: Listener, jobs: Sequence[Job]) -> bool:
    """Return whether these trials of a grid are so short that they train in this process."""
    from .step_times import short_grid_seconds  # noqa: PLC0415 -- not needed if the user decides

    times = TimeEstimator(store.trials(), study.trials)
    shares = {
        job.trial.id: job.earlier.share_left(job.trial.settings) for job in jobs if job.earlier is not None
    }
    seconds = short_grid_seconds(study, [job.trial for job in jobs], times, machine, shares)
    if seconds is not None and jobs:
        listener(Event(kind="here", trials=tuple(job.trial for job in jobs), seconds=seconds))
    return seconds is not None


def _record(study: Study, store: Store) -> dict[str, object]:
    """Return what the store keeps of a study that runs, so that later commands know it by its name."""
    path = study.document.path
    return {
        "text": study.document.text,
        "overrides": list(study.document.overrides),
        # JSON has no bytes that are not UTF-8, as a folder's name may have
        "path": os.fsencode(path.absolute()).decode(errors="backslashreplace") if path else None,
        "own_corpus": study.own_corpus and study.own_corpus.to_dict(),
        "published": dict(study.published.texts),
        "run": datetime.now(UTC).isoformat(timespec="seconds"),
        "seeds_before": list(seeds_before(study, store)),
        "stated": state_claims(study, store),
        "seal": (store.records.load(study.name) or {}).get("seal"),
        "other_paths": other_files(study, store),
    }


def _missing_jobs(study: Study, store: Store, run_id: str, arguments: RunArguments) -> list[Job]:
    """Return a job for each missing trial of a grid, in the order in which the jobs should start.

    Trials that were begun come first, whoever began them. A trial comes last if the last two processes that
    trained it died.
    """
    # read before the outcomes: an attempt that ends in between has a lease that says so
    last = store.last_numbers()
    statuses = {trial: status for trial, (status, _) in store.latest_attempts().items()}
    missing = trials_to_run(
        study, store, statuses, only=arguments.trial_ids, retry_failed=arguments.retry_failed
    )
    folder, earlier = store.files.checkpoints_folder(), EarlierTrials(store)
    turns = start_turns(study)
    last_turn = max(turns.values(), default=0) + 1
    turns |= dict.fromkeys(store.files.trials_with_checkpoint(trial.id for trial in missing), BEGUN_TURN)
    turns |= {trial.id: last_turn for trial in missing if dies_often(folder / trial.id)}
    return [
        Job(
            trial=trial,
            attempt=last.get(trial.id, -1) + 1,
            run=run_id,
            keep_weights=study.header.keep_weights,
            keep_checkpoint=keeps_last_state(study, trial.common),
            earlier=earlier.find(trial),
            turn=turns[trial.id],
        )
        for trial in sorted(missing, key=lambda trial: turns[trial.id])
    ]


@dataclass(frozen=True, slots=True)
class _Run:
    """The training of a study's missing trials. Methods return the reasons why trials were abandoned.

    `settings` are those of all missing trials. The `counter` is the listener, and tells the user's.
    """

    study: Study
    store: Store
    machine: Machine
    counter: RunCounter
    arguments: RunArguments
    run_id: str
    settings: Sequence[TrialSettings]

    def _train(self, source: TrialSource) -> list[str]:
        study, store, machine, counter = self.study, self.store, self.machine, self.counter
        if self.arguments.local:
            run_local(source, store, machine, counter, counter.stop)
            return []
        from .ray_cluster import train_on_ray  # noqa: PLC0415 -- Ray is loaded only where it runs

        held = [as_long_as_data(each, study.own_corpus) for each in self.settings]
        return train_on_ray(
            source,
            store,
            machine,
            counter,
            counter.stop,
            study=study.name,
            settings=held,
            callbacks=self.arguments.callbacks,
        )

    def train_grid(self, free: list[Job]) -> list[str]:
        """Train the trials of a grid, at most `max_trials`."""
        elsewhere, given_up = dict[str, Run](), list[str]()
        jobs, max_trials = {job.trial.id: job for job in free}, self.arguments.max_trials
        left = len(free) if max_trials is None else max_trials
        while free and left > 0 and not self.counter.stop.requested:
            now, free = free[:left], free[left:]
            self.counter(Event(kind="planned", trials=tuple(job.trial for job in now)))
            given_up += self._train(GridTrials(now))
            taken_now = self.counter.pop_claimed_elsewhere()
            # trials that other drivers have taken do not count against `max_trials`
            left -= len(now) - len(taken_now)
            elsewhere |= {trial: run for trial, run in taken_now.items() if run.status == "elsewhere"}
            if not free and left > 0:
                found = self._wait(elsewhere)
                free = [replace(jobs[trial], gone=gone) for trial, gone in found.items()]
                for trial in found:
                    del elsewhere[trial]
        return given_up

    def train_search(self) -> list[str]:
        """Run a search until its budget is used. It ends earlier if `max_trials` trials have ended."""
        from .search.search import Search  # noqa: PLC0415 -- Optuna is loaded for searches only

        given_up, gone, max_trials = list[str](), dict[str, int](), self.arguments.max_trials
        while True:
            left = None if max_trials is None else max_trials - self.counter.ended.total()
            source = Search(
                self.study,
                self.store,
                self.run_id,
                self.counter,
                max_trials=left,
                retry_failed=self.arguments.retry_failed,
                gone=gone,
            )
            if source.has_next():  # otherwise no worker starts
                given_up += self._train(source)
            taken_now = self.counter.pop_claimed_elsewhere()
            if not taken_now or self.counter.ended.total() == max_trials:
                return given_up
            gone = self._wait({trial: run for trial, run in taken_now.items() if run.status == "elsewhere"})
            if self.counter.stop.requested:
                return given_up

    def _wait(self, trials: Mapping[str, Run]) -> dict[str, int]:
        """Wait until this run can take over one of these trials.

        Other drivers have claimed them. The wait also ends when all these trials have ended, or when a stop
        is requested. Return the number of the dead owner's last attempt, or -1, by free trial.
        """
        waiting, shown, leases = dict(trials), list[Run](), self.store.leases(self.run_id)
        while waiting and not self.counter.stop.requested:
            found = {trial: leases.find(trial, each.attempt) for trial, each in waiting.items()}
            stored = self.store.last_numbers() if any(each and each.ended for each in found.values()) else {}
            free: dict[str, int] = {}
            for trial, state in found.items():
                if state is None:
                    free[trial] = -1
                elif state.ended and stored.get(trial, -1) >= state.attempt:
                    del waiting[trial]
                elif state.lists_are_current if state.ended else state.gone:
                    free[trial] = state.attempt
                else:
                    waiting[trial] = run_elsewhere(state)
            if free:
                return free
            if waiting and shown != (now := list(waiting.values())):
                self.counter(Event(kind="waiting", runs=tuple(now)))
                shown = now
            time.sleep(leases.poll_s)
        return {}


def _summary(study: Study, store: Store, counter: RunCounter, given_up: list[str]) -> Summary:
    if study.search is None:
        held = {trial: status for trial, (status, _) in store.latest_attempts().items()}
        statuses = [held.get(trial.id, "incomplete") for trial in study.trials]
        left = statuses.count("incomplete")
    else:
        found = study_status(study, store)
        statuses, left = list(found.stored.values()), found.left
    failed = counter.ended["failed"]
    return Summary(
        done=statuses.count("done"),
        failed=statuses.count("failed"),
        pruned=statuses.count("pruned"),
        ran=counter.ended.total(),
        left=left,
        given_up=tuple(given_up),
        stop_reason=f"{plural(failed, 'trial')} failed" if counter.has_failed_too_often else None,
    )
