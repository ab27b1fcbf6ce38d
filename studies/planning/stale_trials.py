"""Stored trials that plug-ins of other source have computed, and what they would be called now."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from ...errors import check_arguments, texts_fault
from ...storage import Store, open_store, store_fault
from ..resolve.plugin_code import changed_code, digest, shown, with_code
from ..resolve.trial import settings_from_json, trial_id
from ..study import Study, study_fault
from ..text.units import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleTrial:
    """A stored trial that is done, and the id that it would have with today's source.

    `changes` has the old and the new source by what is used of it; the old one is "" if unrecorded.
    """

    stored: str
    now: str
    changes: Mapping[str, tuple[str, str]]


def find_stale_trials(study: Study, outcomes: pl.DataFrame) -> dict[str, StaleTrial]:
    """Return the stored trials of a study that only exist with other source, by their ids of today.

    Of several, the one that ended last counts. They are no outcomes of the study.
    """
    done = outcomes.filter(status="done")
    if study.search is None:
        wanted = {trial.id: trial for trial in study.trials if trial.settings.code}
        recipes = {trial.settings.model.recipe for trial in wanted.values()}
        done = done.filter(pl.col("recipe").is_in(list(recipes)))
    else:
        wanted, done = None, done.filter(pl.col("study") == study.name)
    here = set(outcomes["trial"])
    stale = _stale(done) if wanted is None or wanted else ()
    return {
        each.now: each for each in stale if each.now not in here and (wanted is None or each.now in wanted)
    }


def keep_stale_trials(
    study: Study, store: Store | str | Path, trials: Collection[str] | None = None
) -> dict[str, StaleTrial]:
    """Take the stored trials of other source for outcomes of a study, and return them by their ids now.

    For an edit that changes no number. Their rows still say which source it was. `trials` says which may be
    taken, by their ids now; those that somebody trains are left to whoever does.
    """
    check_arguments(
        study_fault(study),
        store_fault(store),
        None if trials is None else texts_fault("trials", trials, "[study.trials[0].id]"),
    )
    store = open_store(store)
    found = find_stale_trials(study, store.trials())
    wanted = {now: each for now, each in found.items() if trials is None or now in trials}
    return {now: each for now, each in wanted.items() if store.upkeep.copy_outcome(each.stored, now)}


def describe_stale(stale: Mapping[str, StaleTrial]) -> str:
    """Return how many stored trials have other source, and of which plug-ins."""
    pairs = {both for each in stale.values() for both in each.changes.values()}
    changes = ", ".join(sorted(_change(then, now) for then, now in pairs))
    count = len(stale)
    are = "is" if count == 1 else "are"
    return f"{plural(count, 'stored trial')} {are} of other code ({changes})"


def _stale(rows: pl.DataFrame) -> Iterator[StaleTrial]:
    """Yield the rows of other source in the order in which they ended."""
    for trial, text in rows.sort("finished").select("trial", "settings").iter_rows():
        if changes := changed_code(text):
            try:
                now = trial_id(with_code(settings_from_json(text)))
            except ValueError:  # with keys that are no longer known
                continue
            yield StaleTrial(stored=trial, now=now, changes=changes)


def _change(then: str, now: str) -> str:
    """`mqar.py 1a2b3c4d, now 3c4d5e6f`; packages that are another version are named twice."""
    if not then:
        return f"{now.rpartition(' ')[0]}, not noted which, now {shown(now).rpartition(' ')[2]}"
    same = then.rpartition(" ")[0] == now.rpartition(" ")[0]
    return f"{shown(then)}, now {shown(digest(now)).strip() if same else shown(now)}"
