"""Which trials of a grid a run trains, and which it leaves since the store has what became of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ...storage import Store
from ..resolve.trial import Trial
from ..study import Study


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
