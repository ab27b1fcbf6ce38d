"""Files of trained models that trainings start from, named by `[train] start` or by levels that fill it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...errors import nearest_hint
from ...storage.errors import StoreError
from ..schema.factors import HOLE_PATTERN, TableLevels, placed_levels
from ..schema.settings import StartSettings
from ..text.document import Diagnostics
from ..text.strict_model import as_table
from ..text.toml_positions import KeyPath
from ..text.units import listed, plural

START: KeyPath = ("train", "start")
"""The key that names a trained model."""

WEIGHTS_FILE = "model.safetensors"
"""The file of a model in a folder, as on the Hugging Face Hub."""

_OF_STORE = re.compile(r"([\w.-]+):(\w*)")
_MAX_NAMED = 5


class _StartError(ValueError):
    """Error for a model that cannot be found."""


def start_tables(data: Mapping[str, Any]) -> Iterator[tuple[KeyPath, Mapping[str, Any]]]:
    """Yield each table that names a trained model, with its path in the study's tables."""
    start = as_table(data.get("train")).get("start")
    if isinstance(start, Mapping):
        yield START, start
    elif isinstance(start, str) and (hole := HOLE_PATTERN.fullmatch(start)):
        for path, factor, level in placed_levels(data):
            if factor == hole[1] and isinstance(level, Mapping):
                yield path, level


def read_starts(diagnostics: Diagnostics, folder: Path) -> dict[str, Path]:
    """Return the file of each trained model that a study names, by its written name and store.

    Paths are relative to `folder`. Models that are not found are reported.
    """
    found = dict[str, Path]()
    for path, table in start_tables(diagnostics.data):
        model, store = table.get("model"), table.get("store", StartSettings.model_fields["store"].default)
        if not isinstance(model, str) or not isinstance(store, str):
            continue  # `StartSettings` reports it
        try:
            found[start_key(table)] = _find(model, store, folder)
        except (_StartError, StoreError) as error:
            diagnostics.report((*path, "model"), str(error))
            diagnostics.invalid.update((path, START))
    return found


def start_key(table: Mapping[str, Any]) -> str:
    """Return what identifies the model of a table in a study file."""
    return f"{table.get('model')} in {table.get('store', '')}"


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_given(diagnostics: Diagnostics, digests: Mapping[str, str]) -> None:
    """Report tables whose own `sha256` is not that of the file."""
    for path, table in start_tables(diagnostics.data):
        given, read = table.get("sha256"), digests.get(start_key(table))
        if given is not None and read is not None and given != read:
            message = (
                f"expected the SHA-256 of the model's file, {read}, got {given!r}: was it trained again?"
            )
            diagnostics.report((*path, "sha256"), message)


def complete_train(train: Mapping[str, Any], digests: Mapping[str, str]) -> dict[str, Any]:
    """Return the table [train] with the SHA-256 of the model that its `start` names."""
    start = train.get("start")
    return {**train, "start": _with_digest(start, digests)} if isinstance(start, Mapping) else dict(train)


def complete_levels(levels: TableLevels, digests: Mapping[str, str]) -> TableLevels:
    """Return levels that are tables with the SHA-256 of the model that they name, if any."""
    return {
        factor: {level: _with_digest(table, digests) for level, table in tables.items()}
        for factor, tables in levels.items()
    }


def _with_digest(table: Mapping[str, Any], digests: Mapping[str, str]) -> Mapping[str, Any]:
    sha256 = digests.get(start_key(table))
    return table if sha256 is None else {**table, "sha256": sha256}


def _find(model: str, place: str, folder: Path) -> Path:
    path = folder / model
    if path.is_dir():
        path /= WEIGHTS_FILE
    if path.is_file():
        return path.absolute()
    if (named := _OF_STORE.fullmatch(model)) is None:
        beside = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
        form = f"expected STUDY:TRIAL, a model's file, or a folder with {WEIGHTS_FILE}"
        raise _StartError(f"{form}, got no file {path}{nearest_hint(path.name, beside)}")
    return _find_trial(named[1], named[2], place)


def _find_trial(study: str, trial: str, place: str) -> Path:
    """Return the file with the weights of a study's trial in the store at a place."""
    from ...storage import Store  # noqa: PLC0415 -- loads polars, which a list of all keys does without
    from ...storage.rows import KEY_COLUMNS  # noqa: PLC0415 -- as above

    store = Store(place)
    rows = store.trials(columns=(*KEY_COLUMNS, "status")).filter(status="done")
    own = rows.filter(study=study)
    if not len(own):
        where = f"the store {store.absolute_place} (key store)"
        known = sorted(set(rows["study"]))
        named = nearest_hint(study, known) or (f"; it has {listed(known[:_MAX_NAMED])}" if known else "")
        raise _StartError(f"{where} has no finished trial of study '{study}'{named}")
    found = sorted({each for each in own["trial"] if each.startswith(trial)}) if trial else []
    kept = store.files.trials_with_weights(own["trial"])
    if len(found) != 1:
        some = f"; models are kept of {listed(sorted(kept)[:_MAX_NAMED])}" if kept else ""
        which = f"{plural(len(found), 'trial')} of {study} with ids that begin with '{trial}'"
        raise _StartError(f"expected one trial, got {which}{some}")
    if found[0] not in kept:
        raise _StartError(
            f"the weights of trial {found[0]} of {study} were not kept: set keep_weights = true in its "
            "[study], and run it again"
        )
    return store.files.weights_file(found[0]).absolute()
