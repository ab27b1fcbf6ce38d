"""The rows of files, each of two values, checked: when a study is read, and again when its trials are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..catalog.datasets import HeldOutFractions
from ..catalog.own_corpora import SPLITS, OwnLayout
from .cells import Cells, RowsError
from .columnar import read_columnar
from .delimited import read_csv, read_tsv
from .json_lines import read_json_lines
from .values import read_label, read_sequence, read_split

_TEXTS = {"csv": read_csv, "tsv": read_tsv, "jsonl": read_json_lines}


class Row(NamedTuple):
    """A sequence and what is to be learnt of it, in one of the splits."""

    split: str
    sequence: str
    target: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RowKind:
    """What the two values of a row are made of; `read` raises ValueError for what they cannot be."""

    read_sequence: Callable[[Any], str]
    read_target: Callable[[Any], Any]


CLASSES = RowKind(read_sequence=read_sequence, read_target=read_label)
"""A sequence and its class."""


def iter_parts(layout: OwnLayout) -> Iterator[tuple[str, str]]:
    """The SHA-256 of each file, with the split that it is of unless a column says another."""
    for split in SPLITS:
        for digest in getattr(layout, split):
            yield split, digest


def read_part(layout: OwnLayout, kind: RowKind, split: str, data: bytes) -> list[Row]:
    """The rows of a file with their splits as written; RowsError with what is wrong, without its name."""
    columns = [*layout.columns, *([] if layout.split is None else [layout.split])]
    cells = _read_cells(layout.form, data, columns)
    readers = [kind.read_sequence, kind.read_target, read_split][: len(columns)]
    rows, faults = list[Row](), list[str]()
    for index, values in enumerate(zip(*cells.columns, strict=True)):
        found: list[Any] = []
        for name, read, value in zip(columns, readers, values, strict=True):
            try:
                found.append(read(value))
            except ValueError as error:
                faults.append(f"{cells.unit} {cells.numbers[index]:,}, column {name}: {error}")
        if len(found) == len(columns):
            rows.append(Row(found[2] if layout.split is not None else split, found[0], found[1]))
    if faults:
        raise RowsError(faults)
    return rows


def draw_split(layout: OwnLayout, row: Row) -> Row:
    """The row in its split: of those to train on, some are held out where a split has no rows of its own."""
    if row.split != "train" or not (layout.dev_share or layout.test_share):
        return row
    shares = HeldOutFractions(dev=layout.dev_share, test=layout.test_share)
    return row._replace(split=shares.split_of(row.sequence))


def _read_cells(form: str, data: bytes, columns: Sequence[str]) -> Cells:
    """What columns of a file have; RowsError."""
    if form in _TEXTS:
        return _TEXTS[form](data.decode().removeprefix("\ufeff"), columns)
    return read_columnar(data, form, columns)
