"""SQL over a store: its trials, metrics and stored outputs, in the dialect of Polars."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import polars as pl

from ..errors import ActivememError, argument_fault, check_arguments
from ..storage import Store, open_store, store_fault
from ..storage.rows import SCHEMAS
from ..studies.text.units import format_bytes
from .subject import metrics_frame, stored_levels, trials_frame

_READS_FILES = re.compile(
    r"\b(?:read|scan)_(?:avro|csv|delta|excel|iceberg|ipc|json|lines|ndjson|ods|parquet)\w*", re.IGNORECASE
)
"""Polars' functions that read files; a query with any of their names is rejected."""

_NARROW = (
    "narrow it with WHERE, GROUP BY or LIMIT, or read the Parquet files themselves (docs/how-to/continue.md)"
)


class QueryError(ActivememError):
    """Error for a query that cannot be answered. The message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLimits:
    """The limits of a query: rows of its result, seconds, and bytes of memory.

    The memory of the tables that the query reads does not count.
    """

    rows: int = 1_000_000
    memory_bytes: int = 4 << 30
    seconds: float = 60.0


def query(store: Store | str | Path, sql: str, limits: QueryLimits | None = None) -> pl.DataFrame:
    """Run one SQL statement on a store, and return the answer.

    The tables hold the trials of all studies. `trials` has a row for each trial's latest attempt, and
    `metrics` a row for each value that this attempt reported. Both have the factors' levels as columns.
    `outputs` has a row for each stored output line of a test split; `tuned_outputs` has the outputs of tuned
    searches. Every table except `trials` is read only if the statement names it. A separate process runs the
    query within `limits`. A statement cannot read other files. Raises QueryError.
    """
    check_arguments(
        store_fault(store),
        argument_fault("sql", sql, str, "a statement, such as 'SELECT trial FROM trials'"),
        argument_fault("limits", limits, (QueryLimits, type(None))),
        error=QueryError,
    )
    store = open_store(store)
    if found := _READS_FILES.search(sql):
        raise QueryError(f"query: expected a statement about the store, got {found[0]}, which reads files")
    outcomes = store.trials()
    levels = stored_levels(outcomes)
    studies = outcomes.select("trial", "study").join(levels, on="trial", how="left", maintain_order="left")
    tables = {
        "trials": trials_frame(outcomes, levels).lazy(),
        "metrics": metrics_frame(_read_lazily(store.metrics, "metrics"), studies),
        "outputs": _read_lazily(store.outputs, "outputs"),
        "tuned_outputs": _read_lazily(partial(store.outputs, tuned=True), "tuned_outputs"),
    }
    return _answer(sql, tables, limits or QueryLimits())


def _answer(sql: str, tables: Mapping[str, pl.LazyFrame], limits: QueryLimits) -> pl.DataFrame:
    """Run a statement in a separate process. Only the tables that the statement names are read."""
    with tempfile.TemporaryDirectory(prefix="activemem-query-") as folder:
        files, answer = dict[str, str](), Path(folder, "answer")
        for name, table in tables.items():
            # a table that the statement does not name is not read; only its columns are known
            is_named = re.search(rf"\b{name}\b", sql, re.IGNORECASE) is not None
            frame = table.collect() if is_named else pl.DataFrame(schema=table.collect_schema())
            files[name] = str(Path(folder, f"{name}.arrow"))
            frame.write_ipc(files[name])
        request = {"sql": sql, "tables": files, "answer": str(answer), **asdict(limits)}
        try:
            ended = subprocess.run(
                # -P, so that modules in the script's folder do not hide others of the same name
                [sys.executable, "-P", str(Path(__file__).with_name("sql_process.py"))],
                input=json.dumps(request).encode(),
                capture_output=True,
                timeout=limits.seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise QueryError(f"query: stopped after {limits.seconds:g} s; {_NARROW}") from None
        if ended.returncode:
            most = format_bytes(limits.memory_bytes)
            raise QueryError(f"query: it needs more than {most} of memory, or Polars fails on it; {_NARROW}")
        if fault := ended.stdout.decode():
            raise QueryError(f"query: {fault}")
        found = pl.read_ipc(answer)
    if len(found) > limits.rows:
        raise QueryError(f"query: its answer has more than {limits.rows:,} rows; {_NARROW}")
    return found


def _read_lazily(read: Callable[[], pl.DataFrame], dataset: str) -> pl.LazyFrame:
    return pl.defer(read, schema={name: kind for name, kind in SCHEMAS[dataset].items() if name != "study"})
