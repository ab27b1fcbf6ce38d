"""The courses of the metrics of trials that have ended: read once for each attempt that counts, and kept."""

from __future__ import annotations

import polars as pl

from ...storage import Store

_COLUMNS = ("trial", "attempt", "epoch", "name", "value")
_ATTEMPT = ["trial", "attempt"]


class CourseKeeper:
    """The courses of a study's attempts, those of metrics without an index."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: pl.DataFrame | None = None
        self._courses: pl.DataFrame | None = None

    def read(self, outcomes: pl.DataFrame) -> pl.DataFrame:
        """Return the courses of these attempts, of which only those are read that were not there before."""
        ended = outcomes.select(*_ATTEMPT, "study")
        new = ended if self._known is None else ended.join(self._known, on=_ATTEMPT, how="anti")
        if self._courses is None or len(new):
            found = self._store.metric_course(None, new).select(_COLUMNS)
            found = found.filter(~pl.col("name").str.contains("[", literal=True))
            self._courses = found if self._courses is None else pl.concat([self._courses, found])
        if self._known is not None and len(self._known.join(ended, on=_ATTEMPT, how="anti")):
            self._courses = self._courses.join(ended, on=_ATTEMPT, how="semi")
        self._known = ended
        return self._courses
