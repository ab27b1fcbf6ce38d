"""Lists of studies: shipped ones, those that ran into a store, and exported ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...storage import Store
from ...studies.last_run import StudyOutline, outline_studies
from ...studies.planning.status import StudyStatus, status_before_a_run, study_status
from ...studies.study import Study
from ...studies.text.errors import StudyError
from ...studies.text.units import WIDTH, plural, truncate

if TYPE_CHECKING:
    import polars as pl

    from ...tracking.export import StudyExport


def studies_with_status(store: Store) -> dict[str, tuple[str, StudyStatus] | StudyError]:
    """Return every study's title and status by its name, or why it cannot be read."""
    outcomes = store.trials()
    return {
        name: study if isinstance(study, StudyError) else (study.title, _status(study, store, outcomes))
        for name, study in outline_studies(store, outcomes).items()
    }


def _status(study: Study | StudyOutline, store: Store, outcomes: pl.DataFrame) -> StudyStatus:
    return (
        status_before_a_run(study.trials)
        if isinstance(study, StudyOutline)
        else study_status(study, store, outcomes)
    )


def format_studies(found: Mapping[str, tuple[str, StudyStatus] | StudyError]) -> list[str]:
    """Return a line for each study: its name, how many of its trials are done, its title."""
    rows = [
        (name, "unreadable", one.faults[0].message)
        if isinstance(one, StudyError)
        else (name, f"{one[1].counts['done']}/{one[1].total} done", one[0])
        for name, one in found.items()
    ]
    names, counts = (max((len(row[column]) for row in rows), default=0) for column in (0, 1))
    return [truncate(f"{name:<{names}}   {count:>{counts}}   {text}", WIDTH) for name, count, text in rows]


def format_exported(study: str, program: str, place: str, exported: StudyExport) -> str:
    """`chain for tensorboard in runs: 4 trials, 40 epochs, 1 table; 2 trials known already`."""
    parts = [plural(exported.trials, "trial"), plural(exported.epochs, "epoch")]
    told = ", ".join([*parts, *([plural(exported.tables, "table")] if exported.tables else [])])
    known = f"; {plural(exported.known, 'trial')} known already" if exported.known else ""
    return f"{study} for {program} in {place}: {told}{known}"
