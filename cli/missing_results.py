"""Messages about missing results and failed trials, with the commands that the user needs next."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import typer

from .. import reporting
from ..plugins import has_plugins, loaded_files, plugin_path
from ..storage import Store, StoreError
from ..storage.rows import KEY_COLUMNS, TRIALS
from ..studies.last_run import other_files, other_results
from ..studies.planning.final_values import NOT_A_NUMBER, SEES_FUTURE
from ..studies.planning.other_versions import find_other_versions
from ..studies.planning.reused_trials import describe_stale, find_stale_trials
from ..studies.planning.status import StudyStatus, stored_outcomes, study_outcomes
from ..studies.study import Study, shipped_studies
from ..studies.text.errors import command_line
from ..studies.text.units import labelled_lines
from .machine_settings import configured_plugins
from .output import EXIT_FAILED, output_width, print_stderr

DEFAULT_RESULTS = "results"
"""The default store, which the command to continue need not name."""


def no_models_note(study: Study, store: Store) -> str:
    """Return a message that a store has no model of a study, with the command that trains and keeps one."""
    setting = "" if study.header.keep_weights else "set keep_weights = true in [study], then "
    return f"no model of {study.name} is in {_store_and_command(study, store, setting)}"


def _store_and_command(study: Study, store: Store, before: str) -> str:
    where = f"{store.absolute_place}{other_results(store, study.name, study.document.path)}"
    return f"{where}; {before}train it: {train_command(study, store)}"


def failure_help(study: Study, store: Store, reasons: Collection[str]) -> list[str]:
    """Return commands that help after failed trials, each on a line.

    One shows the tracebacks, the other trains the trials again; a plug-in that leaks must be edited first.
    """
    page = store_command(store, "report", "build", study.name, study=study)
    leaks = [reason.startswith(SEES_FUTURE) for reason in reasons]
    lines = [f"  tracebacks, on a page: {page}"]
    if not all(leaks):
        lines.append(f"  train them again: {train_command(study, store, retry_failed=True)}")
    if any(leaks):
        lines.append(f"  edit the plug-in that sees the future, then: {train_command(study, store)}")
    if any(reason.startswith(NOT_A_NUMBER) for reason in reasons):
        clips = any(trial.settings.train.clip_norm is not None for trial in study.examples)
        clip_norm = "a lower clip_norm" if clips else "clip_norm = 1.0"
        lines.append(f"  against diverging: a lower [train] lr, warm-up in schedule, or {clip_norm}")
    return lines


def train_command(
    study: Study, store: Store, *, max_trials: int | None = None, retry_failed: bool = False
) -> str:
    """Return the command that trains a study with the loaded plug-ins, and stores the results in `store`."""
    options = {"max_trials": max_trials, "retry_failed": retry_failed, "set": study.document.overrides}
    return store_command(store, "study", "run", _study_argument(study, store), study=study, **options)


def store_command(
    store: Store, *words: str, study: Study | None = None, **options: str | int | Sequence[str] | None
) -> str:
    """Return a command for the user with the loaded plug-ins and, if it is not the default one, the store.

    Plug-ins that activemem.toml or the study names are left out, because the command loads them anyway.
    """
    named = [*configured_plugins(), *(study.plugins if study else ())]
    known = {plugin_path(each).resolve() for each in named}
    plugins = [each.argument for each in loaded_files() if each.path not in known]
    place = None if store.place == DEFAULT_RESULTS else store.place
    return command_line(*words, **options, results=place, plugin=plugins)


def _study_argument(study: Study, store: Store) -> str:
    """Return a study as an argument for commands: its file, or its name if it comes with activemem."""
    shipped = shipped_studies().get(study.name)
    if (path := study.document.path) is None:
        recorded = (store.records.load(study.name) or {}).get("path")
        path = Path(recorded) if recorded else shipped or Path(f"{study.name}.toml")
    if shipped is not None and (path == shipped or not path.exists()):
        return study.name
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def note_other_results(study: Study, store: Store) -> None:
    """Print a note to standard error if another folder has results of a study, and the store has none."""
    has_own = (store.root / "trials" / study.name).is_dir()
    if not has_own and (hint := other_results(store, study.name, study.document.path)):
        print_stderr(f"no trial of {study.name} is in {store.absolute_place}{hint}")


def note_missing_results(results: reporting.StudyResults, status: StudyStatus | None = None) -> bool:
    """Print a note to standard error if no trial of a study has ended, with the command that trains it.

    The note counts trials that another version of a plug-in has trained. Return whether it was printed. The
    store is read unless the study's `status` is given. End the command if files of the study may not be read.
    """
    study, store = results.study, results.store
    stored = status.stored if status else study_outcomes(study, stored_outcomes(store, study))["trial"]
    if len(stored):
        return False
    require_readable(results)
    stale = find_stale_trials(study, stored_outcomes(store, study))
    reuse = f"{describe_stale(stale)}: reuse them with --keep-stale, or " if stale else ""
    which = " with these settings" if (store.root / "trials" / study.name).is_dir() else ""
    note = f"no trial of {study.name}{which} has ended in {_store_and_command(study, store, reuse)}"
    if not stale and store.upkeep.has_lost_rows(study.name):
        check, train = store_command(store, "store", "check"), train_command(study, store)
        lost = f"the trials of {study.name} in {store.absolute_place} are lost or damaged: {check}"
        note = f"{lost}; train them again: {train}"
    print_stderr(note)
    return True


def require_readable(results: reporting.StudyResults) -> None:
    """End the command with status 1 if this process may not read a file of a study in the store."""
    try:
        results.store.check_readable(results.study.name)
    except StoreError as error:
        print_stderr(str(error))
        raise typer.Exit(EXIT_FAILED) from error


def note_other_versions(results: reporting.StudyResults, *, where_missing: bool = False) -> None:
    """Print notes to standard error on stored trials of other versions of a study, and how to see more.

    There is none for overrides of a file. With `where_missing`, there is none for a search, nor for a grid
    with all of its trials in the store.
    """
    study, store = results.study, results.store
    is_from_file = study.document.path is not None
    if is_from_file and study.document.overrides:
        return
    own = {trial.id for trial in study.trials}
    if where_missing and (study.search is not None or own <= set(store.trials(columns=KEY_COLUMNS)["trial"])):
        return
    if notes := find_other_versions(study, store).notes:
        argument = _study_argument(study, store) if is_from_file else study.name
        print_stderr("\n".join(notes))
        print_stderr(f"more on versions: {store_command(store, 'study', 'status', argument, versions=True)}")


def describe_versions(results: reporting.StudyResults) -> list[str]:
    """Return all notes on other versions of a study, with the commands that list and show their trials."""
    from ..reporting.claims.terminal import changes_after_results
    from ..reporting.outcomes import stale_sentences

    study, store, outcomes = results.study, results.store, results.now.outcomes
    found, is_from_file = find_other_versions(study, store), study.document.path is not None
    argument = _study_argument(study, store) if is_from_file else study.name
    see = store_command(store, "study", "forget", argument, stale=True, dry_run=True)
    show = store_command(store, "table", "render", study.name)
    record = store.records.load(study.name) if is_from_file else None
    return [
        *found.notes,
        *([f"to list these trials: {see}"] if found.trials and study.search is None else []),
        *([f"the study as it last ran: {show}"] if record and record["text"] != study.document.text else []),
        *stale_sentences(study, outcomes, study.metrics),
        *changes_after_results(study, store),
        *(f"the name {study.name} is also that of {file}" for file in other_files(study, store)),
    ] or [f"the store has no other version of {study.name}"]


def note_old_values(study: Study, store: Store) -> None:
    """Print notes to standard error on values that are old, or missing in the store.

    A search may have points from before its plug-in's metric changed. A store that was copied without its
    metrics has only the final values of its trials.
    """
    from ..reporting.outcomes import old_values_sentences

    if store.lacks_metrics(study.name):
        check = store_command(store, "store", "check")
        print_stderr(
            f"the metrics of {study.name} by epoch are not in {store.absolute_place}: copy its folder "
            f"metrics/{study.name}, too, or see what is missing: {check}"
        )
    if study.search is not None and has_plugins():
        for text in old_values_sentences(study, store.trials(columns=tuple(TRIALS))):
            print_stderr("\n".join(labelled_lines("note", text, output_width())))


def require_results(results: reporting.StudyResults) -> None:
    """End the command with status 1 if a store has no outcome of a study.

    Otherwise print notes on values that are old or missing.
    """
    if note_missing_results(results):
        note_other_versions(results, where_missing=True)
        raise typer.Exit(EXIT_FAILED)
    note_old_values(results.study, results.store)
