"""SQL over a store: its trials, metrics and stored outputs, in the dialect of Polars."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import cast

import polars as pl

from ..errors import ActivememError, argument_fault, check_arguments, hint, nearest_hint
from ..storage import Store, open_store, store_fault
from ..storage.rows import SCHEMAS, has_trial
from ..studies.study import Study, study_fault
from .outcomes import mark_diverged
from .subject import metrics_frame, stored_levels, study_levels, trials_frame, with_task_names

_SELECT = re.compile(r"\s*select\s+(distinct\s+)?", re.IGNORECASE)

_ALL = "*"
"""A statement that names all columns of all tables."""

_LONG = ("settings", "metrics")
"""The columns of trials with the most text."""

_SIGN = re.compile(r"""'[^']*'|"[^"]*"|[(),]|\bfrom\b""", re.IGNORECASE)

_COMPUTED = re.compile(r"""[^'"]*(\)|[-+*/%]\s*[\w.]+)""")
"""A selected column that is computed and has no name, such as `avg(loss)` or `loss - 1`."""


class QueryError(ActivememError):
    """Error for a query that cannot be answered. The message says why."""


def query(store: Store | str | Path, sql: str, study: Study | None = None) -> pl.DataFrame:
    """Run one SQL statement on a store, and return the answer.

    The tables hold the trials of all studies, or, with `study`, its trials alone: a row for each of its cells
    and seeds, added ones too, whichever study has trained them. `trials` has a row for each trial's latest
    attempt, and `metrics` a row for each value that this attempt reported. Both have the factors' levels as
    columns. The column `diverged` of `trials` tells why tables leave out a trial that is done.
    `outputs` has a row for each stored output line of a test split; `tuned_outputs` has the outputs of tuned
    searches. Every table except `trials` is read only if the statement names it. Computed columns without a
    name are called as they are written, such as `avg(loss)`. Raises QueryError.
    """
    check_arguments(
        store_fault(store),
        argument_fault("sql", sql, str, "a statement, such as 'SELECT trial FROM trials'"),
        None if study is None else study_fault(study),
        error=QueryError,
    )
    store = open_store(store)
    try:
        answer = pl.SQLContext(_tables(store, study, sql), eager=True).execute(sql)
    except pl.exceptions.PolarsError as error:
        raise QueryError(f"query: {_reworded(str(error), _tables(store, study, _ALL))}") from error
    written = _selected(sql)
    if len(written) != answer.width:  # such as SELECT *
        return answer
    named = zip(written, answer.columns, strict=True)
    names = [text if _COMPUTED.fullmatch(text) else column for text, column in named]
    has_twins = len({*names}) < len(names)
    return answer if has_twins else answer.rename(dict(zip(answer.columns, names, strict=True)))


def _tables(store: Store, study: Study | None, sql: str) -> dict[str, pl.LazyFrame]:
    """Return the tables with the columns that a statement may name.

    Without the long settings of trials, and without factors beside each of millions of values, a statement
    takes less time and memory.
    """
    names_trials = sql == _ALL or "trials" in sql.lower()
    if names_trials or study is not None:
        outcomes, levels = read_trials(store, study)
    else:
        columns = [name for name in SCHEMAS["trials"].names() if name not in _LONG]
        outcomes, levels = _with_levels(store.trials(columns=columns), None)
    if study is not None:
        outcomes = outcomes.with_columns(study=pl.lit(study.name))
    trials = levels["trial"].implode()
    studies = outcomes.select("trial", "study").join(levels, on="trial", how="left", maintain_order="left")
    shown = [name for name in studies.columns[1:] if "*" in sql or name in sql]
    tables = {
        "metrics": _read_lazily(store.scan_metrics, "metrics"),
        "outputs": _read_lazily(store.outputs, "outputs"),
        "tuned_outputs": _read_lazily(partial(store.outputs, tuned=True), "tuned_outputs"),
    }
    if study is not None:
        tables = {name: each.filter(pl.col("trial").is_in(trials)) for name, each in tables.items()}
    if shown:
        tables["metrics"] = metrics_frame(tables["metrics"], studies.select("trial", *shown))
    return tables | ({"trials": trials_frame(outcomes, levels).lazy()} if names_trials else {})


def _reworded(error: str, tables: Mapping[str, pl.LazyFrame]) -> str:
    """Return the first part of Polars' message, with the nearest name if a name is unknown."""
    told = error.split("\n\n", 1)[0]  # what follows is Polars' plan of the statement
    match re.findall(r"""["']([^"']*)["']""", told):
        case [name, *known] if "valid columns" in told:
            return f"unknown column '{name}'{nearest_hint(name, known)}"
        case [name, table] if told.startswith("no column named"):
            known = {column for frame in tables.values() for column in frame.collect_schema().names()}
            return f"unknown column '{table}.{name}'{hint(name, known)}"
        case [name] if told.startswith("relation"):
            return f"unknown table '{name}'{nearest_hint(name, tables)}"
        case [name, *_] if "duplicate output name" in told:
            return f"several columns are called '{name}': name them with AS"
    return told


def _selected(sql: str) -> list[str]:
    """Return the columns that a statement selects, as they are written; none if it does not begin so."""
    if (head := _SELECT.match(sql)) is None:
        return []
    columns, start, depth = list[str](), head.end(), 0
    for sign in _SIGN.finditer(sql, start):
        depth += (sign[0] == "(") - (sign[0] == ")")
        if depth == 0 and sign[0].lower() in (",", "from"):
            columns.append(" ".join(sql[start : sign.start()].split()))
            start = sign.end()
            if sign[0] != ",":
                return columns
    return [*columns, " ".join(sql[start:].split())]


def read_trials(store: Store, study: Study | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the latest attempts and the levels of the trials of a study, by default of all."""
    outcomes, levels = _with_levels(store.trials(), study)
    return mark_diverged(outcomes, store), levels


def _with_levels(outcomes: pl.DataFrame, study: Study | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    levels = stored_levels(outcomes) if study is None else study_levels(study, outcomes)
    outcomes = outcomes.filter(has_trial(levels["trial"]))
    return outcomes, with_task_names(levels, outcomes)


def _read_lazily(read: Callable[[], pl.DataFrame | pl.LazyFrame], dataset: str) -> pl.LazyFrame:
    # a lazy frame works as well, which the types of Polars do not say
    eager = cast("Callable[[], pl.DataFrame]", read)
    return pl.defer(eager, schema={name: kind for name, kind in SCHEMAS[dataset].items() if name != "study"})
