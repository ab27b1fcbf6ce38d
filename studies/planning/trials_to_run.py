"""Which trials a run trains, which have begun, and which it leaves since the store has their outcome."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...storage import Store
from ...storage.checkpoint_notes import STARTS_FILE
from ...storage.integrity.regular_file import UnreadableError, read_regular
from ..resolve.trial import Trial
from ..study import Study

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedTrial:
    """A trial without an outcome that somebody has started or, if not, wants to be trained."""

    trial: Trial
    has_started: bool


def unfinished_trials(root: Path) -> list[UnfinishedTrial]:
    """The trials that have a checkpoint below a folder, in the order of their JSON.

    One whose first line is not what was written is named in the log and left out.
    """
    found: list[tuple[str, UnfinishedTrial]] = []
    for path in root.glob(f"*/{STARTS_FILE}"):
        try:
            line, ended, starts = read_regular(path).decode(errors="replace").partition("\n")
            if ended and (trial := Trial.from_json(line)).id == path.parent.name:
                found.append((line, UnfinishedTrial(trial=trial, has_started=bool(starts.strip()))))
            elif ended:
                _log.warning("%s is left out: expected trial %s, got another", path, path.parent.name)
        except (OSError, UnreadableError, ValueError, KeyError, TypeError, AttributeError) as error:
            _log.warning("%s is left out: expected a trial (%s)", path, error)
    return [each for _, each in sorted(found, key=lambda each: each[0])]


def trials_to_run(
    study: Study,
    store: Store,
    statuses: Mapping[str, str],
    *,
    only: Collection[str] | None = None,
    retry_failed: bool = False,
) -> list[Trial]:
    """The trials of a grid that have no outcome, given the status by id of those that have one.

    Pruned trials, which a search gave up, incomplete ones, whose metrics are lost, and done ones whose
    weights are missing run again; failed ones where it is asked for. `only` limits them to these ids.
    """
    repeated = {"pruned", "incomplete", *(["failed"] if retry_failed else [])}
    without_weights = set(trials_missing_weights(study, store, statuses))
    return [
        trial
        for trial in study.trials
        if (only is None or trial.id in only)
        and (trial.id not in statuses or statuses[trial.id] in repeated or trial.id in without_weights)
    ]


def trials_missing_weights(study: Study, store: Store, statuses: Mapping[str, str]) -> tuple[str, ...]:
    """The done trials of a grid that keeps weights, but whose weights the store lacks.

    A run trains them again.
    """
    if not study.keep_weights or study.search is not None:
        return ()
    done = [trial.id for trial in study.trials if statuses.get(trial.id) == "done"]
    kept = store.trials_with_weights(done)
    return tuple(trial for trial in done if trial not in kept)
