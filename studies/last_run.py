"""Loading of studies as they last ran, from the text and overrides that the store has kept."""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from ..errors import check_arguments, hint
from ..plugins import is_inline, loading_advice, owners_to_load
from ..storage import Store, StoreError, open_store, store_fault
from ..storage.rows import KEY_COLUMNS
from .resolve.trial import code_owner
from .sections import SECTIONS
from .study import (
    Study,
    hint_beside,
    is_path,
    kind_of_name,
    load_plugins,
    load_recorded_study,
    load_study,
    load_trials,
    shipped_studies,
)
from .text.document import Diagnostics, read_document
from .text.errors import StudyError, StudyFault, command_line
from .text.units import plural, truncate

_log = logging.getLogger(__name__)


def load_last_run(
    name_or_path: str | None,
    store: Store,
    overrides: Sequence[str] = (),
    *,
    quiet: bool = False,
    folder: Path | None = None,
    reads: Collection[str] = (),
) -> Study:
    """Return a study as it last ran in a store.

    Without a name, it is the study that ran last. A path means the current file, and so does a name that has
    never run here. Further overrides come last. Unless `quiet`, log a warning if the file of that name, in
    the working directory or in `folder`, has changed since.

    The caller `reads` some sections of the file, such as "table". Their faults raise StudyError; faults of
    the others are logged, unless `quiet`. A file that is as it last ran, or shipped, needs no such check.
    """
    name = store.records.latest() if name_or_path is None else name_or_path
    if name is None:
        message = (
            f"no study has run in {store.absolute_place}{other_results(store)}; "
            "train one first: activemem study run NAME"
        )
        raise StudyError(store.place, [StudyFault(message=message)])
    record = None if is_path(name) else store.records.load(name)
    if record is None:
        _check_known(name, store)
        try:
            found = load_trials(name, overrides)
        except StudyError as error:
            raise _with_hint(error, _missing_data_hint(Path(name), store)) from error
        _check_sections(found, store, reads, quiet=quiet)
        return found
    files = [file for file in (Path(f"{name}.toml"), (folder or Path()) / f"{name}.toml") if file.is_file()]
    changed = next((found for file in files if (found := _changed_file(file, record))), None)
    if files and changed is None:  # the user's own file, which may name files of plug-ins
        load_plugins(Diagnostics(read_document(files[0])), files[0].parent)
    try:
        found = load_recorded_study(record, overrides)
        _check_sections(found, store, reads, quiet=quiet)
    except StudyError as error:
        lacking = [StudyFault(message=each) for each in _lacking_plugins(name, store)]
        failed = StudyError(f"{name} (last run)", [*lacking, *error.faults])
        file = truncate(record.get("path") or f"{name}.toml", _LONGEST_PATH)
        way = f"delete such levels from {file}, and give its path"
        way = f"; an earlier version ran it: {way}; no result is lost"
        raise _with_hint(failed, "" if lacking or overrides else way) from error
    if changed is not None and not quiet:
        _note_change(changed, record.get("path"))
    return found


_LONGEST_PATH = 300
"""The number of characters up to which a message shows a path that a record contains."""


def _check_sections(study: Study, store: Store, reads: Collection[str], *, quiet: bool) -> None:
    """Raise StudyError for faults of the sections that a caller reads, and log those of the others."""
    record, document = store.records.load(study.name) or {}, study.document
    is_checked = (record.get("text"), (*record.get("overrides", ()),)) == (document.text, document.overrides)
    is_checked |= not document.overrides and document.path in shipped_studies().values()
    if faults := study.sections.faults(sections=reads) if is_checked else study.section_faults(reads):
        raise StudyError(document.source, faults)
    if not (is_checked or quiet) and (faults := study.section_faults(set(SECTIONS).difference(reads))):
        _log.warning("%s\n\nother parts of the file are used", StudyError(document.source, faults))


def _with_hint(error: StudyError, text: str) -> StudyError:
    """Return the error with a text at the end of its last fault."""
    *others, last = error.faults
    return StudyError(error.source, [*others, replace(last, message=f"{last.message}{text}")])


def _missing_data_hint(path: Path, store: Store) -> str:
    """Return a hint at the last run of a study, which needs no data, if data files are missing, else ""."""
    from .own_data.own_corpus import corpus_paths  # noqa: PLC0415 -- few studies bring data along

    with suppress(StudyError, StoreError, OSError, KeyError, TypeError):  # its faults are reported already
        data = read_document(path).data
        name, corpus = data["study"]["name"], data["task"]["corpus"]
        record = store.records.load(name)
        missing = not all((path.parent / each).exists() for each in corpus_paths(corpus))
        if missing and record is not None and record.get("own_corpus"):
            place = None if store.place == "results" else store.place
            show = command_line("table", "render", name, results=place)
            return f"; without it, show the study as it last ran, by its name: {show}"
    return ""


def _changed_file(path: Path, record: Mapping[str, Any]) -> Path | None:
    """Return the study file at `path`, or a file of published numbers that it names, if it has changed."""
    try:
        if read_document(path).text != record["text"]:
            return path
    except (OSError, StudyError):  # nobody can read the changed file as a study
        return path
    for name, text in record.get("published", {}).items():
        own = path.parent / name
        with suppress(OSError):  # a missing file does not matter: its text is here
            if own.read_bytes() != text.encode():
                return own
    return None


@cache
def _note_change(file: Path, ran: str | None) -> None:
    """Log that the last run is shown, not this file. It has changed only if it is the file that ran."""
    if file.suffix != ".toml":
        _log.warning(
            "%s has changed since the study's last run, which is shown; for the file, give the study's path",
            file,
        )
        return
    if ran is not None and Path(ran).absolute() == file.absolute():
        why = "has changed since its last run, which is shown"
    else:
        why = f"is not what ran last, which is shown: {ran or 'a text without a file'}"
    _log.warning("%s %s; for the file, give its path", file, why)


def recorded_text(name_or_path: str, store: Store) -> str:
    """Return a study's text at its last run, even with faults; "" for a path or a name that never ran."""
    record = None if is_path(name_or_path) else store.records.load(name_or_path)
    return "" if record is None else record["text"]


def load_to_run(name_or_path: str, store: Store, overrides: Sequence[str] = ()) -> Study:
    """Load a study from its current file, to run it.

    Raise StudyError if the study is invalid, or if there is no file but only a record in the store; the
    error then names the file of the last run.
    """
    record = None if is_path(name_or_path) else store.records.load(name_or_path)
    if record is None or name_or_path in shipped_studies() or Path(name_or_path).exists():
        return load_study(name_or_path, overrides)
    message = f"expected the file of the study, got the name {name_or_path}; the study last ran from"
    if (file := record.get("path")) and _exists(file):
        message += f" {file}"
    else:
        show = command_line("study", "show", name_or_path, toml=True)
        message += f" {file or 'a text'}, which no longer exists; print its text with: {show}"
    raise StudyError(name_or_path, [StudyFault(message=message)])


def describe_taken_name(study: Study, store: Store, when: str) -> str:
    """Return a note if the store knows the study's name from another file, which still exists, else "".

    `when` says from when on the name refers to this file.
    """
    record, path = store.records.load(study.name), study.document.path
    if not record or not record.get("path") or path is None or record["text"] == study.document.text:
        return ""
    before = Path(record["path"])
    if before.absolute() == path.absolute() or not _exists(record["path"]):
        return ""
    return f"the name {study.name} belonged to {before}; {when} it refers to {path}"


def other_files(study: Study, store: Store) -> list[str]:
    """Return the other files, which still exist, from which a study of this name has run in the store."""
    record, path = store.records.load(study.name) or {}, study.document.path
    own = None if path is None else str(path.absolute())
    if own is None and record.get("text") == study.document.text:  # the study is read from its record
        own = record.get("path")
    known = dict.fromkeys([*record.get("other_paths", ()), record.get("path")])
    return [each for each in known if each and each != own and _exists(each)]


def _exists(recorded: str) -> bool:
    # of a recorded path that no system has, such as one of 100,000 letters, Path.exists raises OSError
    return os.path.exists(recorded)  # noqa: PTH110


def other_results(store: Store, study: str = "", file: Path | None = None) -> str:
    """Return a hint at another folder that has results of the study; "" if there is none.

    It is the nearest folder `results` with trials of the study: in the folder of the study's file, in the
    working directory, or in a parent of these folders. Of a shipped study's folder no parent counts: it is
    not the user's.
    """
    here = Path.cwd()
    beside = [file.resolve().parent] if file else []
    if file is not None and file.resolve() not in shipped_studies().values():
        beside += beside[0].parents
    for folder in (each / "results" for each in (*beside, here, *here.parents)):
        if (folder / "trials" / study).is_dir() and folder.resolve() != store.root.resolve():
            shown = os.path.relpath(folder) if here.parent in folder.parents else str(folder)
            return f", but there are results in {folder}: --results {shlex.quote(shown)}"
    return ""


def _check_known(name: str, store: Store) -> None:
    shipped = shipped_studies()
    if is_path(name) or name in shipped or Path(name).exists():
        return
    store.check_readable(name)
    source, studies = name, store.trials(columns=KEY_COLUMNS)["study"]
    if (damaged := store.records.find_damaged(name)) is not None:
        source = f"{name} (last run)"
        message = (
            f"its damaged record in the store was moved to {damaged}; run the study again from its "
            f"file, which rewrites the record: activemem study run FILE"
        )
    elif kind := kind_of_name(name):
        message = f"it is a {kind}, not a study: activemem show {shlex.quote(name)}"
    elif count := len(studies.filter(studies == name)):
        trials = plural(count, "trial")
        message = f"the store has {trials} of it, but no copy of its file: give the file's path"
    else:
        nearest = hint(name, {*shipped, *studies.unique()}) or hint_beside(Path(name))
        near = nearest or ". Train it first: activemem study run FILE; other stores: --results PATH"
        where = f"{store.absolute_place}{other_results(store, name)}"
        message = f"there is no such file, and no study of that name has run in {where}{near}"
    raise StudyError(source, [StudyFault(message=message)])


def _lacking_plugins(name: str, store: Store) -> Iterator[str]:
    own = store.trials(columns=(*KEY_COLUMNS, "version")).filter(pl.col("study") == name)
    # a version is `0.1.0 with mqar.py 1a2b3c4d, …`
    lists = (version.partition(" with ")[2] for version in own["version"].unique())
    used = {code for listed in lists for code in listed.split(", ")}
    for owner in owners_to_load(map(code_owner, used)):
        what = owner if is_inline(owner) else f"the plug-in {owner}"
        yield f"the stored trials used {what}: {loading_advice(owner)}"


def shipped_names(store: Store) -> set[str]:
    """Return the names of studies that come with activemem, but those of which another file ran last."""
    names = set[str]()
    for name, file in shipped_studies().items():
        record = store.records.load(name) or {"path": str(file)}
        if record.get("path") == str(file) or record["text"] == file.read_text(encoding="utf-8"):
            names.add(name)
    return names


def load_studies(store: Store | str | Path) -> dict[str, Study | StudyError]:
    """Return all studies by name: those that are shipped, and those of a store as they last ran.

    A study that cannot be read, for example because keys have changed since, maps to its error.
    """
    check_arguments(store_fault(store))
    store = open_store(store)
    names = shipped_studies().keys() | studies_with_trials(store, store.trials(columns=KEY_COLUMNS))
    return {name: load_or_error(name, store) for name in sorted(names)}


def users_of_trials(store: Store, trials: Collection[str], *, apart_from: str) -> dict[str, str]:
    """Return which of these trials another study of the store has, too, with the name of that study.

    Studies that cannot be read are left out.
    """
    found: dict[str, str] = {}
    for name in store.records.names():
        study = load_or_error(name, store) if name != apart_from else None
        if isinstance(study, Study):
            own = {trial.id for trial in study.with_later_seeds().trials}
            found |= dict.fromkeys(own.intersection(trials), name)
    return found


def studies_with_trials(store: Store, stored: pl.DataFrame) -> set[str]:
    """Return the recorded studies that have stored trials, also if these are trials of another study, too."""
    ids, own = set(stored["trial"]), set(stored["study"])
    found = {name for name in own if store.records.load(name) is not None}
    others = set[str]()
    if ids:
        with suppress(StoreError):  # a record of a newer version
            others = set(store.records.names()) - own
    for name in others:
        study = load_or_error(name, store)
        if isinstance(study, Study) and any(trial.id in ids for trial in study.trials):
            found.add(name)
    return found


def load_or_error(name: str, store: Store, reads: Collection[str] = ()) -> Study | StudyError:
    """Return a study as it last ran in a store, or the error that it or a section cannot be read."""
    try:
        return load_last_run(name, store, reads=reads)
    except StudyError as error:
        return error
    except StoreError as error:  # the record is of another version
        return StudyError(name, [StudyFault(message=str(error))])
