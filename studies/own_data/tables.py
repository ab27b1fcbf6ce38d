"""Tables of one's own: rows in files of one format, split by file, by column or by share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import model_validator

from ..catalog.datasets import CorpusError
from ..catalog.own_corpora import SPLITS, OwnCounts, OwnLayout
from ..text.strict_model import StrictModel
from .cells import RowsError
from .folders import find_files
from .reader import Reader
from .rows import Row, RowKind, draw_split, iter_parts, read_part
from .texts import Share, check_shares

_DEFAULT_SHARE = 0.1
_BINARY = ("parquet", "arrow")


class HeldOutRows(StrictModel):
    """The shares of rows that are held out where a split has no rows of its own, each 0.1 by default."""

    dev: Share | None = None
    test: Share | None = None

    @model_validator(mode="after")
    def check_shares(self) -> HeldOutRows:
        """Something is left to train on."""
        check_shares(self.dev or 0.0, self.test or 0.0)
        return self


class OneTable(HeldOutRows):
    """A file, or a folder with splits; the column `split` may say of each row in which split it is."""

    path: str
    split: str | None = None


class ThreeTables(StrictModel):
    """A file for each split."""

    train: str
    dev: str
    test: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFiles:
    """The files of each split as the keys of a table name them: several of a folder, or two side by side."""

    form: str
    digests: Mapping[str, tuple[str, ...]]


def find_one(reader: Reader, name: str) -> NamedFiles | None:
    """The files of the splits at a path; None if faults are noted."""
    return _find(reader, name, "path")


def find_three(reader: Reader, named: ThreeTables) -> NamedFiles | None:
    """A file for each split, all of one format; None if faults are noted."""
    found = {split: _find(reader, getattr(named, split), split) for split in SPLITS}
    sound = {split: files for split, files in found.items() if files is not None}
    for split, files in sound.items():
        if files.digests.keys() != {"train"}:
            reader.report(
                f"{getattr(named, split)}: expected one split, got {', '.join(files.digests)}", split
            )
            return None
    forms = {files.form for files in sound.values()}
    if len(forms) > 1:
        names = ", ".join(getattr(named, split) for split in SPLITS)
        reader.report(f"expected files of one format, got {names}")
    if len(sound) < len(SPLITS) or len(forms) > 1:
        return None
    digests = {split: files.digests["train"] for split, files in sound.items()}
    return NamedFiles(form=forms.pop(), digests=digests)


def read_rows(
    reader: Reader,
    files: NamedFiles,
    kind: RowKind,
    columns: Sequence[str],
    *,
    split: str | None = None,
    shares: HeldOutRows | None = None,
) -> tuple[OwnLayout, list[Row]] | None:
    """How rows stand in files, and all of them in their splits; None if faults are noted."""
    layout = OwnLayout(
        form=files.form,
        train=files.digests.get("train", ()),
        dev=files.digests.get("dev", ()),
        test=files.digests.get("test", ()),
        columns=tuple(columns),
        split=split,
    )
    rows = _all_rows(reader, layout, kind)
    if rows is None:
        return None
    if shares is not None:
        layout = _with_shares(reader, layout, shares, {row.split for row in rows})
        rows = [draw_split(layout, row) for row in rows]
    counts = Counter(row.split for row in rows)
    if missing := [each for each in SPLITS if not counts[each]]:
        without = " and ".join(missing)
        reader.report(f"expected rows in every split, got none in {without} of {len(rows):,} rows")
        return None
    return layout, rows


def count_rows(rows: Sequence[Row]) -> OwnCounts:
    """How many rows each split has."""
    return OwnCounts(**Counter(row.split for row in rows))


def _find(reader: Reader, name: str, key: str) -> NamedFiles | None:
    """The files of the splits at a path; None if faults are noted at a key."""
    try:
        form, files = find_files(reader.locate(name))
    except CorpusError as error:
        reader.report(str(error), key)
        return None
    read = {
        split: [reader.read(path, key, text=form not in _BINARY) for path in paths]
        for split, paths in files.items()
    }
    if any(None in each for each in read.values()):
        return None
    digests = {split: tuple(one[0] for one in each if one) for split, each in read.items()}
    return NamedFiles(form=form, digests=digests)


def _all_rows(reader: Reader, layout: OwnLayout, kind: RowKind) -> list[Row] | None:
    """The rows of all files; None if faults are noted."""
    rows, sound = list[Row](), True
    for split, digests in iter_parts(layout):
        paths = [reader.files[digest] for digest in digests]
        read = [reader.read(path, text=layout.form not in _BINARY) for path in paths]
        try:
            rows += read_part(layout, kind, split, *(each[1] for each in read if each))
        except RowsError as error:
            sound = False
            for fault in error.faults:
                reader.report(f"{' and '.join(map(str, paths))}: {fault}")
    return rows if sound else None


def _with_shares(reader: Reader, layout: OwnLayout, named: HeldOutRows, found: set[str]) -> OwnLayout:
    """The layout with the shares of those splits that have no rows; a share of one that has is noted."""
    shares: dict[str, float] = {}
    for split in ("dev", "test"):
        share: float | None = getattr(named, split)
        if split not in found:
            shares[f"{split}_share"] = _DEFAULT_SHARE if share is None else share
        elif share is not None:
            reader.report(f"it has no effect, since there are rows of {split}: leave it out", split)
    return layout.model_copy(update=shares)
