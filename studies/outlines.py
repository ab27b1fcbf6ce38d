"""Outlines of studies: the title and the number of trials, without loading the study in full.

An outline counts the trials from the design of the study file.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..storage import Store, StoreError
from ..storage.rows import KEY_COLUMNS, has_trial
from ..storage.trial_files import STARTS_FILE, read_begun
from .last_run import load_or_error, shipped_names, studies_with_trials
from .resolve.trial import first_of_each_kind
from .study import Study, load_study, read_size, shipped_studies
from .text.document import Diagnostics, read_document
from .text.errors import StudyError
from .text.strict_model import as_table

Traits = tuple[Any, ...]
"""The values of the keys by which an outline distinguishes trials."""


_KEYS = (
    *(("task", "name"), ("model", "d_model"), ("train", "batch_size"), ("train", "epochs")),
    ("train", "steps_per_epoch"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOutline:
    """The title and the number of trials of a study that is not loaded in full."""

    title: str
    trials: int


def outline_studies(store: Store) -> dict[str, Study | StudyOutline | StudyError]:
    """Return all studies by name; unused shipped studies only as outlines, where possible.

    A shipped study is unused if the store has no trial of it. The user's own studies come first.
    """
    shipped, stored = shipped_studies(), store.trials(columns=KEY_COLUMNS)
    recorded = {name for name in shipped if store.records.load(name) is not None}
    ran = studies_with_trials(store, stored) | recorded
    found: dict[str, Study | StudyOutline | StudyError] = {name: load_or_error(name, store) for name in ran}
    known = known_traits(store, [each for each in found.values() if isinstance(each, Study)])
    for name in shipped.keys() - ran:
        found[name] = outline(shipped[name], known) or load_or_error(name, store)
    others = shipped_names(store)
    return {name: found[name] for name in sorted(found, key=lambda name: (name in others, name))}


def outline(path: Path, known: Collection[Traits]) -> StudyOutline | None:
    """Return the title and the number of trials of a study file, or None if the study must be loaded.

    A study must be loaded if one of its trials may be among those with the `known` traits, because a store
    may then have the trial. It must also be loaded if the file has faults, and if cells may be left out for
    their size. A search has the trials that it requests; whether its space has as many is not counted.
    """
    try:
        document = read_document(path)
        own = traits(document.data)
        # a missing key or a hole may have any value in a trial
        is_open = [value is None or (isinstance(value, str) and "{" in value) for value in own]
        if any(all(map(operator.or_, is_open, map(operator.eq, own, each))) for each in known):
            return None
        if "search" in document.data:
            study = load_study(path)
            assert study.search is not None
            return StudyOutline(title=study.title, trials=study.search.requested_trials)
    except StudyError:
        return None
    diagnostics = Diagnostics(document)
    header, trials = read_size(diagnostics)
    if diagnostics.faults or header.limits:
        return None
    return StudyOutline(title=header.title, trials=trials)


def traits(tables: Mapping[str, Any]) -> Traits:
    """Return the traits of a trial or study, such as task, width and batch size.

    These are also the epochs and the steps per epoch. Two studies can share a trial only if their traits are
    equal, which is faster to compare than the trials. `tables` are a trial's settings or the tables of a
    study file. A missing key has the value None.
    """
    return tuple(as_table(tables.get(table)).get(key) for table, key in _KEYS)


def known_traits(store: Store, loaded: Iterable[Study] = ()) -> set[Traits]:
    """Return the traits of all trials in a store or in the loaded studies."""
    trials = [trial for study in loaded for trial in study.trials]
    kinds = [each.settings for each in first_of_each_kind(trials)]
    found: set[Traits] = {tuple(getattr(getattr(each, table), key) for table, key in _KEYS) for each in kinds}
    other = ~has_trial(trial.id for trial in trials)
    settings = store.trials(columns=(*KEY_COLUMNS, "settings")).filter(other)["settings"]
    texts: list[str] = settings.str.replace(r'"seed":\d+', '"seed":0').unique().to_list()
    for path in store.files.checkpoints_folder().glob(f"*/{STARTS_FILE}"):
        with suppress(OSError, StoreError):  # `unfinished_trials` reports these errors
            texts += [] if (begun := read_begun(path.parent)) is None else [begun[0].settings]
    for text in texts:
        with suppress(ValueError, RecursionError, AttributeError):
            found.add(traits(json.loads(text)))
    return found
