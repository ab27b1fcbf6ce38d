"""Labelled sequences of the user: a class or a number for each, or a class for each token."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..catalog.own_corpora import OwnLayout, OwnSequences
from ..text.diagnostics import Diagnostics
from ..text.strict_model import StrictModel
from .reader import CORPUS, Reader
from .rows import CLASSES, NUMBERS, TAGS, Row, RowKind
from .tables import OneTable, ThreeTables, count_rows, find_one, find_three, read_rows
from .values import Tokens


class _LabelColumns(StrictModel):
    """The columns of the sequences, and of what is to be learnt of them."""

    text: str = "text"
    label: str = "label"


class _OneLabelled(OneTable, _LabelColumns):
    """A file, or a folder with splits."""


class _ThreeLabelled(ThreeTables, _LabelColumns):
    """A file for each split."""


def read_classes(diagnostics: Diagnostics, reader: Reader, table: Mapping[str, Any]) -> OwnSequences | None:
    """Sequences with a class each; None if faults are noted."""
    found = _read_table(diagnostics, reader, table, CLASSES)
    return found and _classified(reader, *found, {row.target for row in found[1]})


def read_tags(diagnostics: Diagnostics, reader: Reader, table: Mapping[str, Any]) -> OwnSequences | None:
    """Sequences with a class for each token; None if faults are noted."""
    found = _read_table(diagnostics, reader, table, TAGS)
    return found and _classified(
        reader, *found, {label for row in found[1] for label in row.target if label is not None}
    )


def read_numbers(diagnostics: Diagnostics, reader: Reader, table: Mapping[str, Any]) -> OwnSequences | None:
    """Sequences with a number each; None if faults are noted."""
    found = _read_table(diagnostics, reader, table, NUMBERS)
    if found is None:
        return None
    layout, rows = found
    if len({row.target for row in rows if row.split == "train"}) < 2:
        reader.report("expected at least two different numbers in the train split, got one")
        return None
    return _facts(layout, rows, None)


def _read_table(
    diagnostics: Diagnostics, reader: Reader, table: Mapping[str, Any], kind: RowKind
) -> tuple[OwnLayout, list[Row]] | None:
    """Return the layout of the rows and all rows; None if faults are reported."""
    if "path" in table:
        one = diagnostics.validate(_OneLabelled, CORPUS, table)
        files = one and find_one(reader, one)
        if one is None or files is None:
            return None
        columns = (one.text, one.label)
        return read_rows(reader, files, kind, columns, split=one.split, splits=one.splits, shares=one)
    if "train" in table:
        three = diagnostics.validate(_ThreeLabelled, CORPUS, table)
        files = three and find_three(reader, three)
        if three is None or files is None:
            return None
        return read_rows(reader, files, kind, (three.text, three.label), shares=three.shares)
    reader.report('expected { path = "my.csv" }, or a file each for train, dev and test')
    return None


def _classified(reader: Reader, layout: OwnLayout, rows: list[Row], classes: set[str]) -> OwnSequences | None:
    """Return the facts about rows with these classes; None if there are too few classes."""
    if len(classes) < 2:
        reader.report(f"expected at least two labels, got {', '.join(classes)} alone")
        return None
    return _facts(layout, rows, len(classes))


def _facts(layout: OwnLayout, rows: Iterable[Row], classes: int | None) -> OwnSequences:
    rows = list(rows)
    train = (row.sequence for row in rows if row.split == "train")
    return OwnSequences(
        layout=layout,
        rows=count_rows(rows),
        lists=any(isinstance(row.sequence, Tokens) for row in rows),
        symbols=len({token for sequence in train for token in sequence.split()}),
        classes=classes,
    )
