"""A part of a grid: its trials with the levels that the user selects, or one share of several."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import polars as pl

from ...diagnostics import nearest_hint
from ...storage import Store
from ...storage.checkpoint_notes import STARTS_FILE, begun_trials
from ..schema.level_names import NamedLevels, level_text
from ..study import Study
from ..text.errors import StudyError, StudyFault

_SHARD = re.compile(r"([0-9]{1,9})/([0-9]{1,9})", re.ASCII)


def select_trials(study: Study, selectors: Sequence[str]) -> frozenset[str]:
    """Return the ids of the trials that match every selector `factor=level`.

    Several levels of one factor are alternatives. Raises StudyError, with every fault, for an unknown
    factor or level, if no trial matches, and for a search, whose trials are not known.
    """
    if study.search is not None:
        raise StudyError(
            study.name, [StudyFault(message="a search has no parts: its trials are yet to be chosen")]
        )
    asked: dict[str, set[str]] = {}
    faults: list[StudyFault] = []
    for text in selectors:
        factor, _, word = (each.strip() for each in text.partition("="))
        try:
            level = _resolve_level_text(study, factor, word)
        except ValueError as error:
            faults.append(StudyFault(message=f"{text}: {error}"))
        else:
            asked.setdefault(factor, set()).add(level)
    found = frozenset(
        trial.id
        for trial in study.cells
        if all(level_text(trial.levels[factor]) in texts for factor, texts in asked.items())
    )
    if not (faults or found):
        faults = [StudyFault(message=f"no trial has all of this: {', '.join(selectors)}")]
    if faults:
        raise StudyError(study.name, faults)
    return found


def stored_part(study: Study, store: Store, selectors: Sequence[str]) -> frozenset[str]:
    """Return the ids of all stored trials of a study.

    With selectors only those that match, as in `select_trials`. Trials that were only begun or handed in are
    included. Stored trials match by their levels, so those of other code or of earlier settings match, too.
    """
    rows = store.trials().filter(pl.col("study") == study.name)
    if not selectors:
        begun = begun_trials(store.files.checkpoints_folder(STARTS_FILE), study.name)
        return frozenset(rows["trial"]) | {trial.id for trial in study.trials} | begun
    chosen = select_trials(study, selectors)
    cells = [dict(trial.levels) for trial in study.cells if trial.id in chosen]
    stored = rows.select("trial", "factors").iter_rows()
    return chosen | {trial for trial, factors in stored if json.loads(factors) in cells}


def select_shard(study: Study, text: str) -> frozenset[str]:
    """Return the ids of the trials of the share `text`: "3/16" is the third of sixteen.

    Shares are disjoint and cover all trials. A trial's id alone decides its share. Raises StudyError for
    another text, and for a search or a path, whose trials are not known.
    """
    if study.search is not None:
        message = (
            "a search has no shards: its trials are yet to be chosen, and drivers of one store share them"
        )
        raise StudyError(study.name, [StudyFault(message=f"--shard {text}: {message}")])
    if study.design.kind == "path":
        message = (
            "a path has no shards: its next round depends on all of this one, and runs of one store share it"
        )
        raise StudyError(study.name, [StudyFault(message=f"--shard {text}: {message}")])
    found = _SHARD.fullmatch(text)
    number, count = (int(each) for each in found.groups()) if found else (0, 0)
    if not 1 <= number <= count:
        message = f"--shard: expected I/N with I from 1 to N, such as 3/16, got {text!r}"
        raise StudyError(study.name, [StudyFault(message=message)])
    return frozenset(trial.id for trial in study.cells if int(trial.id, 16) % count == number - 1)


def _resolve_level_text(study: Study, factor: str, name: str) -> str:
    """Return the text of the level that a name stands for; ValueError if there is not exactly one."""
    if factor not in study.factors:
        raise ValueError(f"unknown factor '{factor}'{nearest_hint(factor, study.factors)}")
    levels = {
        level_text(trial.levels[factor]): trial.levels[factor] for trial in (*study.cells, *study.over_budget)
    }
    return level_text(NamedLevels(levels.values(), f"of {factor}").find(name))
