"""Driver of a study: it trains the trials that the store lacks, here or on Ray, until none is missing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from uuid import uuid4

import polars as pl

from ...errors import argument_fault, check_arguments, number_fault, texts_fault
from ...storage import Store, open_store, store_fault
from ...studies.catalog.own_corpora import FOLDER
from ...studies.planning.plan import left_of_search, most_at_once
from ...studies.planning.status import study_outcomes
from ...studies.planning.time_estimates import TimeEstimator
from ...studies.rounds import follow_rounds, has_more
from ...studies.schema.settings import TrialSettings
from ...studies.study import Study, study_fault
from ...studies.text.units import plural
from ..core.cpu import restored_process
from ..core.events import Listener
from ..core.resources import ONE_CPU, Machine
from ..corpora import keep_files
from ..optimisers.parameter_groups import group_sizes
from ..packs.form import count_packs
from ..training_parts.loss_terms import check_watched
from ..trial.machine_failures import MachineError, check_gpu, storing
from .cohort_sources import CohortSource, GridCohorts
from .gpu_share import with_gpu_bytes, with_whole_gpu
from .interrupts import Stop, on_interrupt
from .last_resort import killed_if_stuck
from .local_run import run_local
from .notebook_progress import notebook_listener
from .plugin_rehearsal import rehearse_plugins
from .preflight import check_device, check_leaks, check_reaches, check_test_lengths, prepare_corpora
from .rounds import RunCounter, RunRounds, find_missing
from .short_grids import short_grid_seconds

MERGED_TOGETHER = 256
"""During a run, the files of this many ended trials become one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Counts of a study after a run: trials in the store by status, trials that ran now, trials left.

    `given_up` says why cohorts were given up whose workers died too often. `stop_reason` says why a run ended
    that nobody stopped: as many trials failed as were allowed.
    """

    done: int
    failed: int
    pruned: int
    ran: int
    left: int
    stopped: bool
    given_up: tuple[str, ...] = ()
    stop_reason: str | None = None

    @property
    def is_cut_short(self) -> bool:
        """Return whether something ended the run early."""
        return self.stopped or bool(self.given_up) or self.stop_reason is not None


@restored_process()
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
) -> Summary:
    """Train every trial of a study that the store lacks, at most `max_trials` of them.

    `local` trains in this process (True) or on Ray (False). By default a grid trains here if its missing
    trials are so short that starting Ray is not worth it; the results are the same. `trial_ids` restricts a
    grid to these trials. The run ends once `max_failures` trials have failed in it. Without a `listener`, a
    notebook shows the progress. An ablation path continues from round to round.

    On Ctrl-C the run ends in order, and the same call resumes each trial from its last checkpoint. Failed
    trials count as outcomes; `retry_failed` tries them again, after a time limit from where they were. Any
    number of drivers may run one study on one store at once. Each trains what no other does, waits for the
    rest, and takes over the trials of processes that are gone.

    Raises before anything trains:
        LeakError: a causal model sees later tokens.
        ParameterGroupError, LossTermError: a model lacks what a group of weights or a loss term names.
        TaskError: a model cannot read its test.
        PrecisionError, CompileModeError: the device lacks a precision or a mode of torch's compiler.
        DataError: a corpus is missing or altered.
    Raises at any time:
        MachineError: the machine lacks a GPU or fails, as with a full disk; no outcome of that is stored.
    """
    check_arguments(
        study_fault(study),
        store_fault(store),
        argument_fault("machine", machine, Machine),
        argument_fault("listener", listener, (Listener, type(None))),
        argument_fault("local", local, (bool, type(None)), "True, False or None"),
        number_fault("max_trials", max_trials, least=0, optional=True),
        number_fault("max_failures", max_failures, least=1, optional=True),
        argument_fault("retry_failed", retry_failed, bool, "True or False"),
        None if trial_ids is None else texts_fault("trial_ids", trial_ids, "[study.trials[0].id]"),
    )
    store = open_store(store)
    request = {"local": local, "max_failures": max_failures, "retry_failed": retry_failed}
    machine = replace(machine, address=None) if local else machine
    if local and machine.memory_limit is not None:
        raise MachineError("memory_limit: expected none with a local run, which has no worker; use Ray")
    check_gpu(machine)
    machine = with_gpu_bytes(machine)
    study = follow_rounds(study, store)
    listener = listener or notebook_listener(study, store, max_trials)
    summary = _run_round(
        study, store, machine, listener, max_trials=max_trials, trial_ids=trial_ids, **request
    )
    while has_more(further := follow_rounds(study, store), study):
        if summary.is_cut_short or summary.ran == max_trials:
            break
        study, ran = further, summary.ran
        left = None if max_trials is None else max_trials - ran
        summary = _run_round(study, store, machine, listener, max_trials=left, trial_ids=trial_ids, **request)
        summary = replace(summary, ran=summary.ran + ran)
    return summary


def _run_round(
    study: Study,
    store: Store,
    machine: Machine,
    listener: Listener,
    *,
    local: bool | None,
    max_trials: int | None,
    max_failures: int | None,
    retry_failed: bool,
    trial_ids: Collection[str] | None,
) -> Summary:
    """Train the trials that are known; of a path, those up to its current round."""
    # before the outcomes: an attempt that ends in between has a lease that says so
    last = store.last_numbers()
    missing = find_missing(study, store, trial_ids, retry_failed=retry_failed)
    settings = [trial.settings for trial in missing]
    _prepare(study, settings, machine)
    if local is None:
        times = TimeEstimator(store.trials(), study.trials)
        seconds = short_grid_seconds(study, missing[:max_trials], times, machine)
        local = seconds is not None
        if seconds is not None and missing:
            listener.training_here(len(missing[:max_trials]), seconds)
    machine = with_whole_gpu(machine) if local else machine
    run_id = uuid4().hex
    _save_record(study, store, run_id, machine)
    at_once = None
    if not local:
        left = _count_at_once(study, store, settings, machine.most_packed, retry_failed=retry_failed)
        at_once = left if max_trials is None else min(left, max_trials)
    with on_interrupt(listener.stopping) as stop:
        merge = partial(store.upkeep.merge_ended, study.name, at_least=MERGED_TOGETHER)
        counter = RunCounter(listener, stop, max_failures, merge)

        def run(source: CohortSource) -> list[str]:
            places = {"machine": machine, "listener": counter, "stop": stop, "local": local}
            return _run(source, study, store, settings, at_once=at_once, **places)

        make_grid = partial(GridCohorts, pack=machine.most_packed)
        rounds = RunRounds(study, store, counter, stop, run, run_id=run_id, make_grid=make_grid)
        given_up = rounds.train(missing, last, max_trials, retry_failed=retry_failed)
    if counter.machine_failure is not None:
        raise MachineError(counter.machine_failure)
    with storing():  # all is stored by now, and what cannot be merged is merged by the next run
        store.upkeep.compact()
    return _summary(study, store, counter, stopped=stop.interrupted, given_up=given_up)


def _count_at_once(
    study: Study,
    store: Store,
    settings: Sequence[TrialSettings],
    most_packed: int,
    *,
    retry_failed: bool,
) -> int:
    """Return how many of the trials that are left can train at once; a pack counts as one."""
    if study.search is None:
        return count_packs(settings, most_packed)
    outcomes = store.trials()
    times = TimeEstimator(outcomes, study.trials or study.boundary_trials())
    left = len(left_of_search(study, store, outcomes, times))
    again = study_outcomes(study, outcomes).filter(pl.col("status") == "failed") if retry_failed else ()
    return most_at_once(study, left + len(again))


def _prepare(study: Study, settings: Sequence[TrialSettings], machine: Machine) -> None:
    """Check that these trials can train, and prepare their corpora; raises as `run_study`."""
    group_sizes(settings)
    check_watched(settings)
    check_leaks(settings)
    check_reaches(settings)
    check_test_lengths(settings)
    check_device(settings, machine)
    if study.own_corpus is not None:
        keep_files(study.own_corpus.files, machine.data / FOLDER)
    prepare_corpora(settings, machine.data)
    rehearse_plugins(settings, machine.data)


def _save_record(study: Study, store: Store, run_id: str, machine: Machine) -> None:
    """Save the study as it runs now, and the free memory of this machine's GPUs.

    A run without GPUs keeps what another run has found, which counts while that one trains.
    """
    free, before = machine.gpu_bytes, store.records.load(study.name) or {}
    store.records.save(
        study.name,
        {
            "text": study.text,
            "overrides": list(study.overrides),
            "path": str(study.path.absolute()) if study.path else None,
            "own_corpus": study.own_corpus and study.own_corpus.to_dict(),
            "run": datetime.now(UTC).isoformat(timespec="seconds"),
            "gpu": before.get("gpu") if free is None else {"run": run_id, "free": free},
        },
    )


def _run(
    source: CohortSource,
    study: Study,
    store: Store,
    settings: Sequence[TrialSettings],
    *,
    at_once: int | None,
    machine: Machine,
    listener: Listener,
    stop: Stop,
    local: bool,
) -> list[str]:
    """Run the cohorts of a source here or on Ray; return why cohorts were given up."""
    metric = study.search.objectives[0].name if study.search else None
    if local:
        with killed_if_stuck():
            run_local(source, store, machine, listener, stop, metric=metric)
        return []
    from .ray_cluster import run_cohorts  # noqa: PLC0415 -- Ray is loaded only where it runs

    return run_cohorts(
        source, store, machine, listener, stop, settings=settings, at_once=at_once, metric=metric
    )


def _summary(
    study: Study, store: Store, counter: RunCounter, *, stopped: bool, given_up: list[str]
) -> Summary:
    held = {trial: status for trial, (status, _) in store.latest_attempts().items()}
    if study.search is None:
        wanted = {trial.id for trial in study.trials}
    else:
        wanted = set(study_outcomes(study, store.trials())["trial"].to_list())
    statuses = [held[trial] for trial in wanted if held.get(trial, "incomplete") != "incomplete"]
    failed = list(counter.ended.values()).count("failed")
    return Summary(
        done=statuses.count("done"),
        failed=statuses.count("failed"),
        pruned=statuses.count("pruned"),
        ran=len(counter.ended),
        left=len(wanted) - len(statuses),
        stopped=stopped,
        given_up=tuple(given_up),
        stop_reason=f"{plural(failed, 'trial')} failed" if counter.has_failed_too_often else None,
    )
