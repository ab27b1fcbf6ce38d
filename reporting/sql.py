"""SQL over everything in a store: its trials, metrics and kept outputs, in the dialect of Polars."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import polars as pl

from ..diagnostics import nearest_hint
from ..errors import ActivememError
from ..storage import Store
from ..storage.schema import SCHEMAS
from .frames import metrics_frame, stored_levels, trials_frame

_NO_TABLE = re.compile(r"relation '(?P<name>.*)' was not found")
_READS_FILES = re.compile(
    r"\b(?:read|scan)_(?:avro|csv|delta|excel|iceberg|ipc|json|lines|ndjson|ods|parquet)\w*", re.IGNORECASE
)
"""Polars' functions that read files; their names are refused wherever they stand, so that none is hidden."""

_NO_COLUMN = re.compile(r'unable to find column "(?P<name>.*?)"')


class QueryError(ActivememError):
    """A query that cannot be answered; the message says why."""


def query(store: Store, sql: str) -> pl.DataFrame:
    """The answer to one statement.

    `trials` has a row for each trial's latest attempt, `metrics` one for each value of it that was reported,
    in whatever study; both have the factors' levels as columns. `outputs` has a row for each line that was
    kept of what models wrote for test splits, `tuned_outputs` so with searches that were tuned. All but the
    trials are read only if they are asked for. No statement reads another file. Raises QueryError.
    """
    if found := _READS_FILES.search(sql):
        raise QueryError(f"query: expected a statement about the store, got {found[0]}, which reads files")
    outcomes = store.trials()
    levels = stored_levels(outcomes)
    tables = {
        "trials": trials_frame(outcomes, levels).lazy(),
        "metrics": metrics_frame(_read_when_asked(store.metrics, "metrics"), _with_study(levels, outcomes)),
        "outputs": _read_when_asked(store.outputs, "outputs"),
        "tuned_outputs": _read_when_asked(partial(store.outputs, tuned=True), "tuned_outputs"),
    }
    try:
        return pl.SQLContext(frames=tables, eager=True).execute(sql)
    except pl.exceptions.PolarsError as error:
        raise QueryError(_explain_error(str(error), tables)) from error


def _read_when_asked(read: Callable[[], pl.DataFrame], dataset: str) -> pl.LazyFrame:
    """What a store has in a dataset of the latest attempts."""
    return pl.defer(read, schema={name: kind for name, kind in SCHEMAS[dataset].items() if name != "study"})


def _with_study(levels: pl.DataFrame, outcomes: pl.DataFrame) -> pl.DataFrame:
    """The levels, the study of each trial in front of them."""
    studies = outcomes.select("trial", "study")
    return studies.join(levels, on="trial", how="left", maintain_order="left")


def _explain_error(message: str, tables: dict[str, pl.LazyFrame]) -> str:
    """What Polars says, without its plan, and with the name that was probably meant."""
    what = message.partition("\n\nResolved plan")[0].partition("\n\n")[0]
    if found := _NO_TABLE.search(what):
        return f"query: there is no table '{found['name']}'{nearest_hint(found['name'], tables)}"
    if found := _NO_COLUMN.search(what):
        columns = {name for table in tables.values() for name in table.collect_schema()}
        return f"query: there is no column '{found['name']}'{nearest_hint(found['name'], columns)}"
    return f"query: {what.removeprefix('sql parser error: ')}"
