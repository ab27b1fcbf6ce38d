"""Running a study: what the store lacks is trained, wherever that is, until nothing is missing."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import polars as pl

from ..storage import Store
from ..studies.search import ends
from ..studies.standing import weightless
from ..studies.study import Study
from ..studies.trial import Trial
from .events import Ended, Event, Listener
from .leaks import check_leaks
from .local import run_local
from .machine import Machine
from .outcome import Task
from .preparing import prepare
from .sources import Grid, Source
from .stopping import Stop, on_interrupt


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """How a study stands after a run: trials in the store by status, those that ran now, those that are left.

    `given_up` holds what happened to cohorts whose workers died too often.
    """

    done: int
    failed: int
    pruned: int
    ran: int
    left: int
    stopped: bool
    given_up: tuple[str, ...] = ()


class _Counter:
    """Passes everything on and counts the trials that end, by id and status."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.ended: dict[str, str] = {}
        self.announce, self.stopping = listener.announce, listener.stopping

    def hear(self, event: Event) -> None:
        if isinstance(event, Ended):
            self.ended[event.trial] = event.status
        self._listener.hear(event)


def run_study(
    study: Study,
    store: Store,
    machine: Machine,
    listener: Listener,
    *,
    local: bool = False,
    max_trials: int | None = None,
    retry_failed: bool = False,
    only: Collection[str] | None = None,
) -> Summary:
    """Train every trial of a study that the store lacks, at most `max_trials` of them.

    Of a grid, those alone whose ids are in `only`, where it is given.

    Raises LeakError or DataError before anything is trained, where a causal task has a model that is not, or
    a corpus is not there. Ends in order on Ctrl-C: the same call goes on from the last epoch of each trial.
    Trials that have failed count as outcomes; `retry_failed` tries them again, after a time limit from where
    they were.
    """
    missing = _missing(study, store, only, retry_failed=retry_failed)
    asked = [trial.settings for trial in missing]
    check_leaks(asked)
    prepare(asked, machine.data)
    store.remember_study(
        study.name,
        {
            "text": study.text,
            "overrides": list(study.overrides),
            "path": str(study.path) if study.path else None,
            "run": datetime.now(UTC).isoformat(timespec="seconds"),
        },
    )
    counter = _Counter(listener)
    with on_interrupt(listener.stopping) as stop:
        source = _source(study, store, counter, missing, max_trials, retry_failed=retry_failed)
        given_up = _run(source, study, store, machine=machine, listener=counter, stop=stop, local=local)
    store.compact()
    return _summary(study, store, counter, stopped=stop.requested, given_up=given_up)


def _source(
    study: Study,
    store: Store,
    listener: Listener,
    missing: Sequence[Trial],
    max_trials: int | None,
    *,
    retry_failed: bool,
) -> Source:
    """The search of a study that has one, else the grid of what is missing, announced at once."""
    run = uuid.uuid4().hex
    if study.search is not None:
        from .searching import Search  # noqa: PLC0415 -- Optuna is loaded for searches only

        return Search(study, store, run, listener, max_trials=max_trials, retry_failed=retry_failed)
    held = store.outcomes()
    tasks = [
        Task(
            trial=trial,
            number=held[trial.id][1] + 1 if trial.id in held else 0,
            run=run,
            keep=study.keep_weights,
        )
        for trial in missing[:max_trials]
    ]
    listener.announce([task.trial for task in tasks])
    return Grid(tasks)


def _missing(study: Study, store: Store, only: Collection[str] | None, *, retry_failed: bool) -> list[Trial]:
    """The trials of a grid that a run is to train; of a search the first and the last that it can choose."""
    if study.search is not None:
        bounds = ({name: ends(found)[place] for name, found in study.dimensions.items()} for place in (0, -1))
        return [study.trial_for(values, study.seeds[0]) for values in bounds]
    held = {trial: status for trial, (status, _) in store.outcomes().items()}
    again = {"pruned", "failed"} if retry_failed else {"pruned"}
    bare = set(weightless(study, store, held))
    return [
        trial
        for trial in study.trials()
        if (only is None or trial.id in only)
        and (trial.id not in held or held[trial.id] in again or trial.id in bare)
    ]


def _run(
    source: Source,
    study: Study,
    store: Store,
    *,
    machine: Machine,
    listener: Listener,
    stop: Stop,
    local: bool,
) -> list[str]:
    """Run the source where it is asked for; why cohorts were given up."""
    metric = study.search.metric if study.search else None
    if local:
        run_local(source, store, machine, listener, stop, metric=metric)
        return []
    from .cluster import run_cohorts  # noqa: PLC0415 -- Ray is loaded only where it runs

    return run_cohorts(source, store, machine, listener, stop, search=study.search, epochs=study.epochs)


def _summary(study: Study, store: Store, counter: _Counter, *, stopped: bool, given_up: list[str]) -> Summary:
    held = {trial: status for trial, (status, _) in store.outcomes().items()}
    if study.search is None:
        wanted = {trial.id for trial in study.trials()}
    else:
        wanted = set(store.trials().filter(pl.col("study") == study.name)["trial"].to_list())
    statuses = [held[trial] for trial in wanted if trial in held]
    return Summary(
        done=statuses.count("done"),
        failed=statuses.count("failed"),
        pruned=statuses.count("pruned"),
        ran=len(counter.ended),
        left=len(wanted) - len(statuses),
        stopped=stopped,
        given_up=tuple(given_up),
    )
