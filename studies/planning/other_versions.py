"""Stored trials of other versions of a study, which the study does not count."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from ...plugins import loading_advice
from ...storage import Store, StoreError
from ...storage.rows import KEY_COLUMNS, has_trial
from ..last_run import describe_taken_name
from ..resolve.result_changes import changes_of
from ..resolve.trial import Trial, first_of_each_kind, settings_from_json
from ..schema.factors import SEED, level_text
from ..study import Study, load_recorded_study
from ..text.document import iter_leaves
from ..text.errors import StudyError
from ..text.units import listed, plural
from .status import count_other_points, stored_outcomes
from .trials_to_run import stale_part, trials_by_lacking_plugin


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherVersions:
    """The stored trials of other versions of a study, with notes on how they differ.

    `trials` counts the stored trials under the study's name that it does not count. `notes` say how they
    differ from the study, as far as it is known: by a change of activemem, by their seeds, by settings, or in
    another way. They also name another file of this name, and plug-ins that must be loaded to know.
    """

    trials: int
    notes: tuple[str, ...]


def find_other_versions(study: Study, store: Store) -> OtherVersions:
    """Compare a study with all trials that the store has under its name."""
    if study.search is not None:
        found = count_other_points(study, stored_outcomes(store, study))
        why = "other settings, data or code, or points outside the present space"
        return OtherVersions(trials=found, notes=(_told(study, found, why),) if found else ())
    taken = describe_taken_name(study, store, "after a run")
    notes = [*([taken] if taken else []), *describe_lacking_plugins(study, store)]
    stale = stale_part(study, store)
    found = stale | _without_overrides(study, store)
    latest = latest_trials(store, found)
    outdated = [each for each in latest if each.id not in found and changes_of(each.settings)]
    before = len(found) if latest and len(outdated) == len(latest) else len(outdated)
    if before:
        why = "from before a change of activemem that moves their results: changelog, Results change"
        notes.append(_told(study, before, why))
    latest = [each for each in latest if each not in outdated]
    of_other_seeds = {trial.id for trial in study.trials_of_seeds(sorted({each.seed for each in latest}))}
    if same := [trial for trial in latest if trial.id in of_other_seeds & found]:
        seeds = listed(sorted({each.seed for each in same}))
        notes.append(_told(study, len(same), f"they would count if the study had their seeds: {seeds}"))
    if others := len(found) - before - len(same):
        why = describe_changed_settings(latest, study) or "other seeds, file, data, code or --set"
        why += "; --keep-stale may have reused them" if any(each.common.code for each in latest) else ""
        notes.append(_told(study, others, why))
    return OtherVersions(trials=len(stale), notes=tuple(notes))


def _without_overrides(study: Study, store: Store) -> set[str]:
    """Return the stored trials that a study read from its last run lacks because of the overrides of the run.

    They are not stale: the study's file has them.
    """
    record = store.records.load(study.name)
    if record is None or study.document.path is not None or not study.document.overrides:
        return set()
    try:
        file = load_recorded_study({**record, "overrides": ()})
    except StudyError:  # a text that needs an override
        return set()
    own = {trial.id for trial in study.with_later_seeds().trials}
    return {trial.id for trial in file.trials}.intersection(store.trials(columns=KEY_COLUMNS)["trial"]) - own


def describe_lacking_plugins(study: Study, store: Store) -> list[str]:
    """Return notes on stored trials under a study's name whose plug-ins are not loaded."""
    notes: list[str] = []
    for owner, trials in trials_by_lacking_plugin(study, store).items():
        need = "needs" if len(trials) == 1 else "need"
        told = f"{plural(len(trials), 'stored trial')} of {study.name} {need} {owner}, which is not loaded"
        notes.append(f"{told}; to see whether the study has them, {loading_advice(owner)}")
    return notes


def _told(study: Study, trials: int, why: str) -> str:
    count = plural(trials, "stored trial")
    return f"{count} of other versions of {study.name} {'is' if trials == 1 else 'are'} not counted ({why})"


MAX_COMPARED: Final = 200
"""The maximum number of stored trials, the latest ones, whose settings are compared with a study's."""

_LONGEST_VALUES: Final = 60


def latest_trials(store: Store, trials: Iterable[str]) -> list[Trial]:
    """Return the stored trials with these ids that ended last, at most `MAX_COMPARED`."""
    rows = store.trials(columns=(*KEY_COLUMNS, "finished", "factors", "settings")).filter(has_trial(trials))
    found: list[Trial] = []
    for row in rows.sort("finished").tail(MAX_COMPARED).iter_rows(named=True):
        with suppress(StoreError):  # the settings have keys that no longer exist
            settings = settings_from_json(row["settings"])
            found.append(Trial(study=row["study"], levels=json.loads(row["factors"]), settings=settings))
    return found


def describe_changed_settings(then: Iterable[Trial], study: Study) -> str:
    """Describe how other trials differ from a study's: `train.epochs = 60, now 100`.

    A setting, or a factor that fills it, is named if none of these trials has a value that a trial of the
    study has. Return "" if none differs in this way.
    """
    before, after = _values_by_key(then), _values_by_key(study.trials)
    changed = {
        key: (values, now)
        for key, values in before.items()
        if (key in after or ("." in key and not key.startswith("code.")))  # of both, or a setting
        and values.keys().isdisjoint(now := after.get(key, {"null": None}))
    }
    filled = {".".join(map(str, path)): names for path, names in study.template.holes.items()}
    return ", ".join(
        _describe_change(key, *both)
        for key, both in changed.items()
        if changed.keys().isdisjoint(filled.get(key, ()))
    )


_DATA_KEYS: Final = {"task.corpus": "the data of [task]", "task.tokenizer": "the tokenizer of [task]"}
"""Settings with facts about the user's files, which count as a single value."""


def _values_by_key(trials: Iterable[Trial]) -> dict[str, dict[str, None]]:
    """Return all values of each factor and setting as JSON, in their order, by the name."""
    found: dict[str, dict[str, None]] = {}
    for trial in first_of_each_kind(trials):
        tables = json.loads(trial.common.model_dump_json(exclude={"seed"}))
        for table, key in (name.split(".") for name in _DATA_KEYS):
            if tables[table].get(key) is not None:
                tables[table][key] = json.dumps(tables[table][key])
        levels = {name: level for name, level in trial.levels.items() if name != SEED}
        for path, value in (*iter_leaves((), levels), *iter_leaves((), tables)):
            found.setdefault(".".join(map(str, path)), {})[json.dumps(value, ensure_ascii=False)] = None
    return found


def _describe_change(key: str, then: Collection[str], now: Collection[str]) -> str:
    if key.startswith("code."):
        return f"the code of {key.removeprefix('code.')} changed"
    old, new = (
        " or ".join("unset" if value is None else level_text(value) for value in map(json.loads, values))
        for values in (then, now)
    )
    if key in _DATA_KEYS or len(old) > _LONGEST_VALUES:
        return f"{_DATA_KEYS.get(key, key)} changed"
    return f"{key} = {old}, now {new if len(new) <= _LONGEST_VALUES else 'others'}"
