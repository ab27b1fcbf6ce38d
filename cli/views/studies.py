"""The studies that there are: those that come with the package, and those that ran into a store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ... import studies
from ...storage import Store
from ...studies.lookup import load_last_run
from ...studies.planning.status import StudyStatus, study_status
from ...studies.study import Study
from ...studies.text.errors import StudyError
from ...studies.text.units import WIDTH, truncate


def list_studies(store: Store) -> dict[str, tuple[Study, StudyStatus] | StudyError]:
    """Every study by name, as it last ran or as it comes, and how it stands in the store.

    A study that cannot be read, since a later version of this package knows other keys, say, is its error.
    """
    shipped = {path.stem for folder in studies.__path__ for path in Path(folder).glob("*.toml")}
    ran = {name for name in store.trials()["study"].unique() if store.load_study_record(name) is not None}
    found: dict[str, tuple[Study, StudyStatus] | StudyError] = {}
    for name in sorted(shipped | ran):
        try:
            study = load_last_run(name, store)
            found[name] = study, study_status(study, store)
        except StudyError as error:
            found[name] = error
    return found


def format_studies(found: Mapping[str, tuple[Study, StudyStatus] | StudyError]) -> list[str]:
    """A line for each study: its name, how many of its trials are done, its title."""
    rows = [
        (name, "unreadable", one.faults[0].message)
        if isinstance(one, StudyError)
        else (name, f"{one[1].counts['done']}/{one[1].total} done", one[0].title)
        for name, one in found.items()
    ]
    names, counts = (max((len(row[column]) for row in rows), default=0) for column in (0, 1))
    return [truncate(f"{name:<{names}}   {count:>{counts}}   {text}", WIDTH) for name, count, text in rows]
