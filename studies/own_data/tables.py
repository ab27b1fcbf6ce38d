"""Tables of one's own: rows of sequences with labels, split by file, by column or by share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from pydantic import model_validator

from ..catalog.datasets import CorpusError
from ..catalog.own_corpora import SPLITS, OwnCounts, OwnLayout, OwnSequences
from ..text.diagnostics import Diagnostics
from ..text.strict_model import StrictModel
from .cells import RowsError
from .folders import find_files
from .reader import CORPUS, Reader
from .rows import CLASSES, Row, RowKind, draw_split, iter_parts, read_part
from .texts import Share, check_shares
from .values import Tokens

_DEFAULT_SHARE = 0.1
_BINARY = ("parquet", "arrow")


class _Columns(StrictModel):
    """The columns that are read."""

    text: str = "text"
    """the column of the sequences"""
    label: str = "label"
    """the column of what is to be learnt of them"""


class _OneTable(_Columns):
    """A file, or a folder with splits; a column may say of each row in which split it is."""

    path: str
    split: str | None = None
    """the column with train, dev or test"""
    dev: Share | None = None
    """the share of the rows to train on that is the dev split where there is no other, 0.1 by default"""
    test: Share | None = None
    """the same for the test split"""

    @model_validator(mode="after")
    def check_shares(self) -> _OneTable:
        """Something is left to train on."""
        check_shares(self.dev or 0.0, self.test or 0.0)
        return self


class _ThreeTables(_Columns):
    """A file for each split."""

    train: str
    dev: str
    test: str


def read_labelled(diagnostics: Diagnostics, reader: Reader, table: Mapping[str, Any]) -> OwnSequences | None:
    """Sequences with a class each; None if faults are noted."""
    found = _read_rows(diagnostics, reader, table, CLASSES)
    if found is None:
        return None
    layout, rows = found
    classes = {row.target for row in rows}
    if len(classes) < 2:
        reader.report(f"expected at least two labels, got {', '.join(classes)} alone")
        return None
    return OwnSequences(
        layout=layout,
        rows=_counts(rows),
        lists=any(isinstance(row.sequence, Tokens) for row in rows),
        symbols=_symbols(rows),
        classes=len(classes),
    )


def _read_rows(
    diagnostics: Diagnostics, reader: Reader, table: Mapping[str, Any], kind: RowKind
) -> tuple[OwnLayout, list[Row]] | None:
    """How the rows stand in files, and all of them in their splits; None if faults are noted."""
    if not {"path", "train"} & table.keys():
        reader.report('expected { path = "my.csv" }, or a file each for train, dev and test')
        return None
    one = diagnostics.validate(_OneTable, CORPUS, table) if "path" in table else None
    three = diagnostics.validate(_ThreeTables, CORPUS, table) if "path" not in table else None
    named = one or three
    if named is None:
        return None
    layout = _layout(reader, named)
    rows = None if layout is None else _all_rows(reader, layout, kind)
    if layout is None or rows is None:
        return None
    if isinstance(named, _OneTable):
        layout = _with_shares(reader, layout, named, {row.split for row in rows})
        rows = [draw_split(layout, row) for row in rows]
    counts = Counter(row.split for row in rows)
    if missing := [split for split in SPLITS if not counts[split]]:
        without = " and ".join(missing)
        reader.report(f"expected rows in every split, got none in {without} of {len(rows):,} rows")
        return None
    return layout, rows


def _layout(reader: Reader, named: _OneTable | _ThreeTables) -> OwnLayout | None:
    """The files of each split and what is read of them; None if faults are noted."""
    keys = (
        {"path": named.path}
        if isinstance(named, _OneTable)
        else {split: getattr(named, split) for split in SPLITS}
    )
    forms, digests, sound = dict[str, str](), dict[str, tuple[str, ...]](), True
    for key, name in keys.items():
        try:
            form, files = find_files(reader.locate(name))
        except CorpusError as error:
            reader.report(str(error), key)
            sound = False
            continue
        if key != "path" and len(files) > 1:
            reader.report(f"{name}: expected one split, got {', '.join(files)}", key)
            sound = False
        forms[form] = name
        for split, paths in files.items():
            read = [reader.read(path, key, text=form not in _BINARY) for path in paths]
            sound = sound and None not in read
            digests[split if key == "path" else key] = tuple(each[0] for each in read if each)
    if len(forms) > 1:
        reader.report(f"expected files of one format, got {', '.join(forms.values())}")
    if not sound or len(forms) > 1:
        return None
    split = named.split if isinstance(named, _OneTable) else None
    return OwnLayout(
        form=next(iter(forms)),
        train=digests.get("train", ()),
        dev=digests.get("dev", ()),
        test=digests.get("test", ()),
        columns=(named.text, named.label),
        split=split,
    )


def _all_rows(reader: Reader, layout: OwnLayout, kind: RowKind) -> list[Row] | None:
    """The rows of all files; None if faults are noted."""
    rows, sound = list[Row](), True
    for split, digest in iter_parts(layout):
        path = reader.files[digest]
        read = reader.read(path, text=layout.form not in _BINARY)
        assert read is not None, "a layout is of files that could be read"
        try:
            rows += read_part(layout, kind, split, read[1])
        except RowsError as error:
            sound = False
            for fault in error.faults:
                reader.report(f"{path}: {fault}")
    return rows if sound else None


def _with_shares(reader: Reader, layout: OwnLayout, named: _OneTable, found: set[str]) -> OwnLayout:
    """The layout with the shares of those splits that have no rows; a share of one that has is noted."""
    shares: dict[str, float] = {}
    for split in ("dev", "test"):
        share: float | None = getattr(named, split)
        if split not in found:
            shares[f"{split}_share"] = _DEFAULT_SHARE if share is None else share
        elif share is not None:
            reader.report(f"it has no effect, since there are rows of {split}: leave it out", split)
    return layout.model_copy(update=shares)


def _counts(rows: list[Row]) -> OwnCounts:
    return OwnCounts(**Counter(row.split for row in rows))


def _symbols(rows: list[Row]) -> int:
    """How many different tokens stand between spaces in what there is to train on."""
    return len({token for row in rows if row.split == "train" for token in row.sequence.split()})
