"""Sentence pairs of the user: two files side by side, or a table with a column for each side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..catalog.own_corpora import SPLITS, OwnPairs
from ..text.diagnostics import Diagnostics
from ..text.strict_model import StrictModel
from .reader import CORPUS, Reader
from .rows import PAIRS
from .tables import (
    HeldOutRows,
    NamedFiles,
    OneTable,
    SplitNames,
    ThreeTables,
    count_rows,
    find_one,
    find_three,
    read_rows,
)


class _PairColumns(StrictModel):
    """The columns of sentences and of their translations; of a TSV without these, its first two."""

    source: str | None = None
    target: str | None = None


class _OneTableOfPairs(OneTable, _PairColumns):
    """A file, or a folder with splits."""


class _ThreeTablesOfPairs(ThreeTables, _PairColumns):
    """A file for each split."""


class _TwoFiles(StrictModel):
    """Sentences, and line by line their translations."""

    source: str
    target: str


class _TwoFilesInShares(HeldOutRows, _TwoFiles):
    """The same, of which shares are held out."""


class _SixFiles(StrictModel):
    """Two files for each split."""

    train: _TwoFiles
    dev: _TwoFiles
    test: _TwoFiles


def read_pairs(diagnostics: Diagnostics, reader: Reader, table: Mapping[str, Any]) -> OwnPairs | None:
    """Pairs in any of these forms; None if faults are noted."""
    if isinstance(table.get("train"), Mapping):
        six = diagnostics.validate(_SixFiles, CORPUS, table)
        return six and _of_lines(reader, {(split,): getattr(six, split) for split in SPLITS})
    if "path" in table:
        one = diagnostics.validate(_OneTableOfPairs, CORPUS, table)
        return one and _of_table(reader, find_one(reader, one), one, one=one)
    if "train" in table:
        three = diagnostics.validate(_ThreeTablesOfPairs, CORPUS, table)
        return three and _of_table(reader, find_three(reader, three), three, shares=three.shares)
    if "source" in table or "target" in table:
        two = diagnostics.validate(_TwoFilesInShares, CORPUS, table)
        return two and _of_lines(reader, {(): two}, shares=two)
    reader.report(
        'expected { source = "my.en", target = "my.fr" }, { path = "my.tsv" }, or files for each split'
    )
    return None


def _of_table(
    reader: Reader,
    files: NamedFiles | None,
    named: _PairColumns,
    *,
    one: OneTable | None = None,
    shares: HeldOutRows | None = None,
) -> OwnPairs | None:
    """Return pairs in columns; None if faults are noted."""
    if files is None:
        return None
    split, shares = (one.split, one) if one else (None, shares)
    if files.form == "tsv" and named.source is None and named.target is None and split is None:
        plain = NamedFiles(form="pairs", digests=files.digests)
        return _facts(reader, plain, (), shares=shares)
    columns = (named.source or "source", named.target or "target")
    return _facts(reader, files, columns, split=split, splits=one.splits if one else None, shares=shares)


def _of_lines(
    reader: Reader, named: Mapping[tuple[str, ...], _TwoFiles], shares: HeldOutRows | None = None
) -> OwnPairs | None:
    """Pairs in two files side by side, by the keys of their splits; None if faults are noted."""
    digests: dict[str, tuple[str, ...]] = {}
    for keys, files in named.items():
        read = [
            reader.read(reader.locate(getattr(files, side)), *keys, side) for side in ("source", "target")
        ]
        digests[keys[0] if keys else "train"] = tuple(each[0] for each in read if each)
    if any(len(each) < 2 for each in digests.values()):
        return None
    return _facts(reader, NamedFiles(form="lines", digests=digests), (), shares=shares)


def _facts(
    reader: Reader,
    files: NamedFiles,
    columns: tuple[str, ...],
    *,
    split: str | None = None,
    splits: SplitNames | None = None,
    shares: HeldOutRows | None = None,
) -> OwnPairs | None:
    found = read_rows(reader, files, PAIRS, columns, split=split, splits=splits, shares=shares)
    return found and OwnPairs(layout=found[0], rows=count_rows(found[1]))
