"""A study's tables as other programs show them."""

from __future__ import annotations

from ..reporting.results import StudyResults
from ..storage import Store
from ..studies.study import Study
from .contract import TrackedTable


def tracked_tables(study: Study, store: Store) -> list[TrackedTable]:
    """Return all tables of a study from the store; none if its file has none."""
    shown = StudyResults(study, store).tables() if study.tables else []
    return [
        TrackedTable(name=each.table.name, markdown=each.render("markdown"), csv=each.render("csv"))
        for each in shown
    ]
