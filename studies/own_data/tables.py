"""Reader of the user's labelled rows or sentence pairs, in files of one format.

Each split has its own files, or a column names the split of a row, or shares of the rows are held out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import model_validator

from ..catalog.datasets import CorpusError
from ..catalog.own_corpora import SPLITS, OwnCounts, OwnLayout, OwnPairs, OwnSequences
from ..text.document import Diagnostics
from ..text.strict_model import StrictModel
from ..text.units import plural
from .cells import MOST_FAULTS, RowsError, quoted
from .reader import CORPUS, Reader, find_files
from .rows import NUMBERS, PAIRS, TAGS, Row, RowKind, Tokens, Unlabelled, draw_split, iter_parts, read_part
from .summary import summarise_rows
from .texts import Share, check_shares

_DEFAULT_SHARE = 0.1
_BINARY = ("parquet", "arrow")


class _HeldOutRows(StrictModel):
    """The shares of training rows to hold out for dev and test. The default is 0.1 each."""

    dev: Share | None = None
    """the share of the dev split (default: 0.1 if no file or row is for it)"""
    test: Share | None = None
    """the share of the test split (default: 0.1 if no file or row is for it)"""

    @model_validator(mode="after")
    def _check_shares(self) -> _HeldOutRows:
        check_shares(self.dev or 0.0, self.test or 0.0)
        return self


class _SplitNames(StrictModel):
    """Names that the data use for the splits, in file names or in a column.

    A dev or test split without a name is held out from the training rows.
    """

    train: str
    """the data's name of the train split"""
    dev: str | None = None
    """the data's name of the dev split"""
    test: str | None = None
    """the data's name of the test split"""


class _OneTable(_HeldOutRows):
    """Schema of `[task] corpus` with one file, or with a folder that has the files of all splits.

    `split` is the column that names the split of each row.
    """

    path: str
    """the data file, or a folder with the files of all splits"""
    split: str | None = None
    """the column that names the split of each row"""
    splits: _SplitNames | None = None
    """the names of the splits in the data, if they are not called train, dev and test"""


class _ThreeTables(StrictModel):
    """Schema of `[task] corpus` with a file for each split.

    A missing split is held out from the training rows.
    """

    train: str
    """the file of the train split"""
    dev: str | Share | None = None
    """the file of the dev split, or its share of the training rows (default: 0.1)"""
    test: str | Share | None = None
    """the file of the test split, or its share of the training rows (default: 0.1)"""

    @property
    def shares(self) -> _HeldOutRows:
        given = {split: getattr(self, split) for split in ("dev", "test")}
        return _HeldOutRows(**{split: value for split, value in given.items() if isinstance(value, float)})


@dataclass(frozen=True, slots=True, kw_only=True)
class _NamedFiles:
    form: str
    digests: Mapping[str, tuple[str, ...]]  # the SHA-256 of the files of each split


def _find_one(reader: Reader, named: _OneTable) -> _NamedFiles | None:
    names = named.splits.model_dump(exclude_none=True) if named.splits and named.split is None else None
    if names and not reader.locate(named.path).is_dir():
        message = "splits has no effect on a single file without a column `split`: remove splits"
        reader.report(message, "splits")
        return None
    return _find(reader, named.path, "path", names)


def _find_three(reader: Reader, named: _ThreeTables) -> _NamedFiles | None:
    paths = {split: path for split in SPLITS if isinstance(path := getattr(named, split), str)}
    found = {split: _find(reader, path, split) for split, path in paths.items()}
    sound = {split: files for split, files in found.items() if files is not None}
    for split, files in sound.items():
        if files.digests.keys() != {"train"}:
            reader.report(f"{paths[split]}: expected one split, got {', '.join(files.digests)}", split)
            return None
    forms = {files.form for files in sound.values()}
    if len(forms) > 1:
        names = ", ".join(paths.values())
        reader.report(f"expected files of one format, got {names}")
    if len(sound) < len(paths) or len(forms) > 1:
        return None
    digests = {split: files.digests["train"] for split, files in sound.items()}
    return _NamedFiles(form=forms.pop(), digests=digests)


def _read_rows(
    reader: Reader,
    files: _NamedFiles,
    kind: RowKind,
    columns: Sequence[str],
    *,
    split: str | None = None,
    splits: _SplitNames | None = None,
    shares: _HeldOutRows | None = None,
) -> tuple[OwnLayout, list[Row]] | None:
    """Read the rows of all splits; return the layout of the files, and the rows.

    A trial stores only the layout, and reads the rows again with it. A dev or test split without any label is
    left out, with a note.
    """
    layout = OwnLayout(
        form=files.form,
        train=files.digests.get("train", ()),
        dev=files.digests.get("dev", ()),
        test=files.digests.get("test", ()),
        columns=tuple(columns),
        split=split,
        split_names=(splits.train, splits.dev or "", splits.test or "") if split and splits else (),
    )
    rows, unlabelled = _all_rows(reader, layout, kind)
    if rows is None:
        return None
    if kind.labels:
        rows, left_out = _leave_out_unlabelled(reader, rows, unlabelled)
        layout = layout.model_copy(update={"left_out": left_out})
    if shares is not None:
        layout = _with_shares(reader, layout, shares, {row.split for row in rows})
        rows = [draw_split(layout, row) for row in rows]
    counts = Counter(row.split for row in rows)
    if missing := [each for each in SPLITS if not counts[each]]:
        without = " and ".join(missing)
        reader.report(f"expected rows in every split, got {len(rows):,} rows and none in {without}")
        return None
    reader.summary = summarise_rows(rows, kind, reader.tokens)
    return layout, rows


def _count_rows(rows: Sequence[Row]) -> OwnCounts:
    return OwnCounts(**Counter(row.split for row in rows))


def _find(reader: Reader, name: str, key: str, names: Mapping[str, str] | None = None) -> _NamedFiles | None:
    try:
        found = find_files(reader.locate(name), names)
    except CorpusError as error:
        reader.report(str(error), key)
        return None
    if found.left_out:
        reader.notes.append(f"{name}: the files of {', '.join(map(quoted, found.left_out[:5]))} are left out")
    form = found.form
    read = {
        split: [reader.read(path, key, text=form not in _BINARY) for path in paths]
        for split, paths in found.files.items()
    }
    if any(None in each for each in read.values()):
        return None
    digests = {split: tuple(one[0] for one in each if one) for split, each in read.items()}
    return _NamedFiles(form=form, digests=digests)


def _all_rows(
    reader: Reader, layout: OwnLayout, kind: RowKind
) -> tuple[list[Row] | None, Mapping[str, list[Unlabelled]]]:
    """Read all files of a layout; return labelled and unlabelled rows.

    The first is None if faults were reported.
    """
    rows, unsound, unlabelled = list[Row](), 0, dict[str, list[Unlabelled]]()
    for split, digests in iter_parts(layout):
        if unsound == MOST_FAULTS:
            reader.report(f"after {MOST_FAULTS} files with faults, the rest are not read")
            break
        paths = [reader.files[digest] for digest in digests]
        read = [reader.read(path, text=layout.form not in _BINARY) for path in paths]
        name = " and ".join(map(str, paths))
        try:
            data = [each[1] for each in read if each]
            rows += read_part(layout, kind, split, *data, unlabelled=unlabelled.setdefault(name, []))
        except RowsError as error:
            unsound += 1
            for fault in error.faults:
                reader.report(f"{name}: {fault}")
    return (None if unsound else rows), unlabelled


def _leave_out_unlabelled(
    reader: Reader, rows: list[Row], unlabelled: Mapping[str, list[Unlabelled]]
) -> tuple[list[Row], tuple[str, ...]]:
    """Leave out splits without labels; return the remaining rows, and the splits that are left out.

    If all labels of a split are -1 and the training split has no such class, they count as missing: public
    test sets hide labels like this. A row without a label in any other split is a fault.
    """
    labels: dict[str, set[Any]] = {split: set() for split in SPLITS}
    for row in rows:
        labels[row.split].update(row.target if isinstance(row.target, tuple) else (row.target,))
    missing = Counter(each.split for found in unlabelled.values() for each in found)
    hidden = {"-1", -1.0} - labels["train"]
    left_out = []
    for split in ("dev", "test"):
        known = labels[split] - hidden - {None}
        if not known and (missing[split] or labels[split]):
            left_out.append(split)
            count = missing[split] + sum(row.split == split for row in rows)
            reader.notes.append(
                f"{split}: {plural(count, 'row')} left out, since none has a label: "
                "training rows are held out instead"
            )
    for path, found in unlabelled.items():
        if faults := [each.fault for each in found if each.split not in left_out]:
            for fault in RowsError(faults).faults:
                reader.report(f"{path}: {fault}")
    return [row for row in rows if row.split not in left_out], tuple(left_out)


def _with_shares(reader: Reader, layout: OwnLayout, named: _HeldOutRows, found: set[str]) -> OwnLayout:
    shares: dict[str, float] = {}
    for split in ("dev", "test"):
        share: float | None = getattr(named, split)
        if split not in found:
            shares[f"{split}_share"] = _DEFAULT_SHARE if share is None else share
        elif share is not None:
            why = f"{split} rows are in the data already, so this share has no effect"
            reader.report(f"{why}: remove {split}", split)
    return layout.model_copy(update=shares)


def _read_named(
    reader: Reader, named: _OneTable | _ThreeTables, kind: RowKind, columns: tuple[str | None, str | None]
) -> tuple[OwnLayout, list[Row]] | None:
    """Read the rows of a corpus from one file, or from a file for each split.

    Return its layout and rows; None after faults. A TSV of pairs without column names uses its first two
    columns.
    """
    if isinstance(named, _OneTable):
        files, split, splits, shares = _find_one(reader, named), named.split, named.splits, named
    else:
        files, split, splits, shares = _find_three(reader, named), None, None, named.shares
    if files is None:
        return None
    if kind is PAIRS and files.form == "tsv" and columns == (None, None) and split is None:
        plain = _NamedFiles(form="pairs", digests=files.digests)
        return _read_rows(reader, plain, kind, (), shares=shares)
    names = (columns[0] or "source", columns[1] or "target")
    return _read_rows(reader, files, kind, names, split=split, splits=splits, shares=shares)


class _LabelColumns(StrictModel):
    text: str = "text"
    """the column with the sequences"""
    label: str = "label"
    """the column with the labels"""


class _OneLabelled(_OneTable, _LabelColumns):
    """Schema of `[task] corpus` with labelled rows in one file, or in a folder with splits."""


class _ThreeLabelled(_ThreeTables, _LabelColumns):
    """Schema of `[task] corpus` with a file of labelled rows for each split."""


SEQUENCE_FORMS: tuple[type[StrictModel], ...] = (_OneLabelled, _ThreeLabelled)
"""The forms of `[task] corpus` with labelled sequences."""


def read_sequences(
    diagnostics: Diagnostics, reader: Reader, table: Mapping[str, Any], kind: RowKind
) -> OwnSequences | None:
    """Read the user's labelled sequences; return the facts about them.

    A sequence has one class, one number, or a class for each token.

    None if faults are reported.
    """
    if not table.keys() & {"path", "train"}:
        reader.report('expected { path = "my.csv" }, or one file each for train, dev and test')
        return None
    named = diagnostics.validate(_OneLabelled if "path" in table else _ThreeLabelled, CORPUS, table)
    found = named and _read_named(reader, named, kind, (named.text, named.label))
    if not found:
        return None
    layout, rows = found
    train = [row for row in rows if row.split == "train"]
    if kind is NUMBERS and len({row.target for row in train}) < 2:
        reader.report("expected at least two different numbers in the train split, got one")
        return None
    each = (row.target if kind is TAGS else (row.target,) for row in rows)
    labels = {label for some in each for label in some if label is not None}
    if kind is not NUMBERS and len(labels) < 2:
        reader.report(f"expected at least two labels, got {', '.join(labels)} alone")
        return None
    return OwnSequences(
        layout=layout,
        rows=_count_rows(rows),
        lists=any(isinstance(row.sequence, Tokens) for row in rows),
        symbols=len({token for row in train for token in row.sequence.split()}),
        classes=None if kind is NUMBERS else len(labels),
    )


class _PairColumns(StrictModel):
    """The columns of the sentences and of their translations.

    By default these are the first two columns of a TSV.
    """

    source: str | None = None
    """the column with the sentences"""
    target: str | None = None
    """the column with their translations"""


class _OneTableOfPairs(_OneTable, _PairColumns):
    """Schema of `[task] corpus` with sentence pairs in one file, or in a folder with splits."""


class _ThreeTablesOfPairs(_ThreeTables, _PairColumns):
    """Schema of `[task] corpus` with a file of sentence pairs for each split."""


class _TwoFiles(StrictModel):
    """Schema of the names of two line-aligned files: sentences and their translations."""

    source: str
    """the file with the sentences, one a line"""
    target: str
    """the file with their translations, one a line"""


class _TwoFilesInShares(_HeldOutRows, _TwoFiles):
    """Schema of `[task] corpus` with two line-aligned files, and shares of lines for dev and test."""


class _SixFiles(StrictModel):
    train: _TwoFiles
    """the two files of the train split"""
    dev: _TwoFiles
    """the two files of the dev split"""
    test: _TwoFiles
    """the two files of the test split"""


PAIR_FORMS: tuple[type[StrictModel], ...] = (
    _OneTableOfPairs,
    _ThreeTablesOfPairs,
    _TwoFilesInShares,
    _SixFiles,
)
"""The forms of `[task] corpus` with sentence pairs."""


def read_pairs(diagnostics: Diagnostics, reader: Reader, table: Mapping[str, Any]) -> OwnPairs | None:
    """Read the user's sentence pairs; return the facts about them.

    The pairs are in one data file, in one for each split, or in line-aligned files of two languages. None if
    faults are reported.
    """
    found = None
    if isinstance(table.get("train"), Mapping):
        six = diagnostics.validate(_SixFiles, CORPUS, table)
        found = six and _read_lines(reader, {(split,): getattr(six, split) for split in SPLITS})
    elif table.keys() & {"path", "train"}:
        model = _OneTableOfPairs if "path" in table else _ThreeTablesOfPairs
        named = diagnostics.validate(model, CORPUS, table)
        found = named and _read_named(reader, named, PAIRS, (named.source, named.target))
    elif table.keys() & {"source", "target"}:
        two = diagnostics.validate(_TwoFilesInShares, CORPUS, table)
        found = two and _read_lines(reader, {(): two}, two)
    else:
        forms = '{ source = "my.en", target = "my.fr" }, { path = "my.tsv" }, or files for each split'
        reader.report(f"expected {forms}")
    return OwnPairs(layout=found[0], rows=_count_rows(found[1])) if found else None


def _read_lines(
    reader: Reader, named: Mapping[tuple[str, ...], _TwoFiles], shares: _HeldOutRows | None = None
) -> tuple[OwnLayout, list[Row]] | None:
    digests: dict[str, tuple[str, ...]] = {}
    for keys, files in named.items():
        paths = {side: reader.locate(getattr(files, side)) for side in ("source", "target")}
        read = [reader.read(path, *keys, side) for side, path in paths.items()]
        digests[keys[0] if keys else "train"] = tuple(each[0] for each in read if each)
    if any(len(each) < 2 for each in digests.values()):
        return None
    return _read_rows(reader, _NamedFiles(form="lines", digests=digests), PAIRS, (), shares=shares)
