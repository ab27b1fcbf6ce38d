"""The studies that there are: those that come with the package, and those that ran into a store."""

from __future__ import annotations

from pathlib import Path

from ... import studies
from ...storage import Store
from ...studies.lookup import load_last_run
from ...studies.planning.status import StudyStatus, study_status
from ...studies.study import Study
from ...studies.text.units import WIDTH, truncate


def list_studies(store: Store) -> list[tuple[Study, StudyStatus]]:
    """Every study by name, as it last ran or as it comes, and how it stands in the store."""
    shipped = {path.stem for folder in studies.__path__ for path in Path(folder).glob("*.toml")}
    ran = {name for name in store.trials()["study"].unique() if store.load_study_record(name) is not None}
    found = [load_last_run(name, store) for name in sorted(shipped | ran)]
    return [(study, study_status(study, store)) for study in found]


def format_studies(found: list[tuple[Study, StudyStatus]]) -> list[str]:
    """A line for each study: its name, how many of its trials are done, its title."""
    names = max(map(len, (study.name for study, _ in found)), default=0)
    counts = [f"{now.counts['done']}/{now.total}" for _, now in found]
    width = max(map(len, counts), default=0)
    return [
        truncate(f"{study.name:<{names}}   {count:>{width}} done   {study.title}", WIDTH)
        for (study, _), count in zip(found, counts, strict=True)
    ]
