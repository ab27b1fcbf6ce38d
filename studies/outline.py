"""Outlines: the number of trials of an untrained study, counted from its design without making them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ..storage import Store, StoreError
from ..storage.checkpoint_notes import STARTS_FILE, read_begun
from .study_contents import read_size
from .text.diagnostics import Diagnostics
from .text.document import read_document
from .text.errors import StudyError

Traits = tuple[Any, ...]
"""What a trial has at each of the keys by which outlines tell trials apart."""

_KEYS = (
    *(("task", "name"), ("model", "d_model"), ("train", "batch_size"), ("train", "epochs")),
    ("train", "steps_per_epoch"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOutline:
    """A study of whose trials a store has none: its question, and how many they are."""

    title: str
    trials: int


def outline(path: Path, known: Collection[Traits]) -> StudyOutline | None:
    """Return the outline of a study file; None if only the whole study gives it.

    This is so if a trial of it may be among those with the `known` traits, if cells may be left out for
    their size, if a search chooses, if sizes of a ladder set trials' keys, and if the file has faults.
    """
    try:
        document = read_document(path)
    except StudyError:
        return None
    if "search" in document.data or "ladder" in document.data:
        return None
    own = traits(document.data)
    if any(all(_agree(*both) for both in zip(own, each, strict=True)) for each in known):
        return None
    diagnostics = Diagnostics(document)
    header, trials = read_size(diagnostics)
    if header is None or diagnostics.faults:
        return None
    if header.max_parameters is not None or header.max_step_flops is not None:
        return None
    return StudyOutline(title=header.title, trials=trials)


def traits(tables: Mapping[str, Any]) -> Traits:
    """Return the traits of a trial's settings, or of a study file; None if it has none."""
    found = (tables.get(table) for table, _ in _KEYS)
    return tuple(
        each.get(key) if isinstance(each, Mapping) else None
        for each, (_, key) in zip(found, _KEYS, strict=True)
    )


def known_traits(store: Store, outcomes: pl.DataFrame) -> set[Traits]:
    """Return the traits of all trials that have outcomes in a store or have begun there."""
    texts = outcomes["settings"].to_list()
    for path in store.files.checkpoints_folder(STARTS_FILE).glob(f"*/{STARTS_FILE}"):
        with suppress(OSError, StoreError):  # reported where it is read as a trial
            texts += [] if (begun := read_begun(path.parent)) is None else [begun[0].settings]
    found = set[Traits]()
    for text in texts:
        with suppress(ValueError, RecursionError, AttributeError):
            found.add(traits(json.loads(text)))
    return found


def _agree(written: object, stored: object) -> bool:
    """Return whether a key of a file can have a value: a hole any, another value only itself."""
    return written is None or (isinstance(written, str) and "{" in written) or written == stored
