"""Studies as they last ran: the store keeps the text of each, and its overrides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from ..diagnostics import hint
from ..errors import check_arguments
from ..plugins import loaded_files
from ..storage import Store, open_store, store_fault
from .outline import StudyOutline, known_traits, outline
from .rounds import follow_rounds
from .study import Study, load_recorded_study, load_study
from .study_files import is_path, shipped_studies
from .text.errors import StudyError, StudyFault


def load_last_run(name_or_path: str | None, store: Store, overrides: Sequence[str] = ()) -> Study:
    """Return the study of that name as it last ran in a store, by default the last one that ran.

    A path means the current file, and so does a name that has never run here. Further overrides come last.
    """
    name = store.records.latest() if name_or_path is None else name_or_path
    if name is None:
        message = f"no study has run in {store.absolute_place}; train one first: activemem study run NAME"
        raise StudyError(store.place, [StudyFault(message=message)])
    record = None if is_path(name) else store.records.load(name)
    if record is None:
        _check_known(name, store)
        return follow_rounds(load_study(name, overrides), store)
    try:
        found = load_recorded_study(record, overrides)
    except StudyError as error:
        told = (StudyFault(message=each) for each in _lacking_plugins(name, store))
        raise StudyError(f"{name}, as it last ran", [*told, *error.faults]) from error
    return follow_rounds(found, store)


def _check_known(name: str, store: Store) -> None:
    """Raise StudyError for a name that is no file, no shipped study and no study of a store."""
    shipped = shipped_studies()
    if is_path(name) or name in shipped or Path(name).exists():
        return
    if (damaged := store.records.find_damaged(name)) is not None:
        message = (
            f"its record in the store is damaged, and was moved to {damaged}; run the study again from its "
            f"file, which writes the record anew: activemem study run FILE"
        )
        raise StudyError(f"{name}, as it last ran", [StudyFault(message=message)])
    known = {*shipped, *store.trials()["study"].unique()}
    near = hint(name, known) or ". Train it first: activemem study run FILE; other stores: --results PATH"
    message = f"there is no such file, and no study of that name has run in {store.absolute_place}{near}"
    raise StudyError(name, [StudyFault(message=message)])


def _lacking_plugins(name: str, store: Store) -> Iterator[str]:
    """Yield the plug-in files that a study's trials were computed with and that are not loaded."""
    own = store.trials().filter(pl.col("study") == name)
    used = {code for version in own["version"].unique() for code in _plugins_of(version)}
    missing = {code.rpartition(" ")[0] for code in used} - {file.path.name for file in loaded_files()}
    for file in sorted(each for each in missing if each.endswith(".py")):
        yield f"its trials were computed with {file}, which is not loaded: --plugin {file}"


def _plugins_of(version: str) -> list[str]:
    """Return the plug-ins in a row's version: `0.1.0 with mqar.py 1a2b3c4d`."""
    return version.partition(" with ")[2].split(", ")


def load_studies(store: Store | str | Path) -> dict[str, Study | StudyError]:
    """Every study by name: those that come with the package, and those that a store knows, as they last ran.

    A study that cannot be read, for instance because keys have changed since, maps to its error.
    """
    check_arguments(store_fault(store))
    store = open_store(store)
    names = shipped_studies().keys() | _ran(store, store.trials())
    return {name: _load_or_fail(name, store) for name in sorted(names)}


def outline_studies(store: Store, outcomes: pl.DataFrame) -> dict[str, Study | StudyOutline | StudyError]:
    """Return all studies, but only outlines of shipped ones of which the store has no trial.

    `outcomes` are the latest attempts in the store.
    """
    shipped, known, ran = shipped_studies(), known_traits(store, outcomes), _ran(store, outcomes)
    found: dict[str, Study | StudyOutline | StudyError] = {}
    for name in sorted(shipped.keys() | ran):
        is_new = name not in ran and store.records.load(name) is None
        found[name] = (outline(shipped[name], known) if is_new else None) or _load_or_fail(name, store)
    return found


def _ran(store: Store, outcomes: pl.DataFrame) -> set[str]:
    """Return the names of studies that have run, and whose record says what they were."""
    return {name for name in outcomes["study"].unique() if store.records.load(name) is not None}


def _load_or_fail(name: str, store: Store) -> Study | StudyError:
    try:
        return load_last_run(name, store)
    except StudyError as error:
        return error
