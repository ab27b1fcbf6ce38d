"""Reader of the user's labelled rows or sentence pairs, in files of one format.

Each split has its own files, or a column names the split of a row, or shares of the rows are held out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import model_validator

from ...errors import quoted
from ..catalog.datasets import CorpusError
from ..catalog.own_corpora import SPLITS, OwnCounts, OwnLayout, OwnPairs, OwnSequences
from ..text.document import Diagnostics
from ..text.strict_model import StrictModel
from ..text.units import listed, plural
from .files import CORPUS, Reader, find_files
from .rows import NUMBERS, PAIRS, TAGS, FoundRows, Row, RowKind, Tokens, draw_splits, group_key, read_rows
from .summary import Read, summarise_pairs, summarise_rows
from .texts import HeldOut, Share, check_shares

_DEFAULT_SHARE = 0.1


class _Rows(StrictModel):
    """Schema of `[task] corpus` with rows in one file, in a file for each split, or in a folder.

    A missing split is held out from the training rows.
    """

    path: str | None = None
    """the data file, or a folder with the files of all splits"""
    train: str | None = None
    """in place of `path`: the file of the train split"""
    dev: str | Share | None = None
    """the file of the dev split, or its share of the training rows (default: 0.1 if no row is for it)"""
    test: str | Share | None = None
    """the file of the test split, or its share of the training rows (default: 0.1 if no row is for it)"""
    split: str | None = None
    """the column that names the split of each row"""
    group: str | None = None
    """the column that names the group of each row, such as a speaker: whole groups are held out"""
    bad_rows: Literal["refuse", "skip"] = "refuse"
    """whether a row with a fault is a fault of the study, or is left out and counted"""

    @model_validator(mode="after")
    def _check_keys(self) -> _Rows:
        if self.path and self.train:
            raise ValueError("expected path or train, got both")
        check_shares(self.dev, self.test)
        return self


def _find(reader: Reader, named: _Rows) -> tuple[str, dict[str, tuple[str, ...]]] | None:
    """Return the format and the SHA-256 of each split's files, or None if faults are reported."""
    given = {"path" if named.path else "train": named.path or named.train or ""}
    given |= {split: path for split in SPLITS[1:] if isinstance(path := getattr(named, split), str)}
    forms, digests, is_sound = set[str](), dict[str, tuple[str, ...]](), True
    for key, name in given.items():
        try:
            form, files = find_files(reader.locate(name))
        except CorpusError as error:
            reader.report(str(error), key)
            is_sound = False
            continue
        forms.add(form)
        for split, paths in files.items():
            read = [reader.read(path, key, text=form != "parquet") for path in paths]
            digests[split if key in ("path", "train") else key] = tuple(filter(None, read))
            is_sound = is_sound and None not in read
        if len(given) > 1 and files.keys() != {"train"}:
            forms.add("a folder with all splits")
    if is_sound and len(forms) > 1:
        reader.report("expected a file of one format for each split, or a folder with all splits")
    return (forms.pop(), digests) if is_sound and len(forms) == 1 else None


def _read_rows(
    reader: Reader, layout: OwnLayout, kind: RowKind, shares: Mapping[str, Any] | None
) -> tuple[OwnLayout, list[Row]] | None:
    """Read the rows of all splits; return the layout of the files, and the rows. None after faults.

    A trial stores only the layout, and reads the rows again with it. `shares` has the requested share of
    training rows for a split, if any; with None, no rows are held out.
    """

    def opened(digest: str) -> tuple[str, bytes]:
        return str(reader.files[digest]), reader.content(digest)

    found = read_rows(layout, kind, opened, keep_unlabelled=True)
    rows, faults = found.rows, found.faults
    if kind.labels:
        rows, left_out = _leave_out_unlabelled(reader, rows)
        layout = layout.model_copy(update={"left_out": left_out})
        if faults or found.skipped or any(row.target is None for row in rows):
            found = read_rows(layout, kind, opened)
            faults = found.faults
            rows = found.rows if layout.skips_bad_rows else rows
    for fault in faults:
        reader.report(fault)
    if faults or not _skips_few(reader, found):
        return None
    given = {row.split for row in rows}
    if shares is not None:
        layout = _with_shares(reader, layout, shares, given)
        if not _has_groups(reader, layout, rows):
            return None
        rows = draw_splits(layout, rows)
    if layout.group is not None:
        groups = {split: len({group_key(row) for row in rows if row.split == split}) for split in SPLITS}
        numbers = ", ".join(f"{split} {count:,}" for split, count in groups.items())
        reader.notes.append(f"groups by {layout.group}: {numbers}")
    counts = Counter(row.split for row in rows)
    if shares is not None and (layout.split or len(given) > 1):
        unasked = [each for each in SPLITS[1:] if shares[each] is None and each not in layout.left_out]
        _warn_of_drawn(reader, {each: counts[each] for each in unasked if each not in given})
    if missing := [each for each in SPLITS if not counts[each]]:
        without = " and ".join(missing)
        reader.report(f"expected rows in every split, got {len(rows):,} rows and none in {without}")
        return None
    return layout, rows


def _skips_few(reader: Reader, found: FoundRows) -> bool:
    """Warn of the rows that are skipped because of faults. Report if they are more than half of all rows."""
    count, first = found.skipped, "; ".join(found.skips)
    total = count + len(found.rows)
    if count > total / 2:
        why = "the columns may be wrong" if total > 1 else "there is no other"
        reader.report(
            f"expected faults in at most half of the rows, got {count:,} of {total:,}: {why}: {first}"
        )
    elif count:
        reader.warnings.append(f"{count:,} of {plural(total, 'row')} skipped because of faults: {first}")
    return count <= total / 2


def _has_groups(reader: Reader, layout: OwnLayout, rows: list[Row]) -> bool:
    """Return whether there are enough groups of training rows to hold some of them out. Report if not."""
    if layout.group is None:
        return True
    drawn = [split for split in SPLITS[1:] if getattr(layout, f"{split}_share")]
    found = {row.group for row in rows if row.split == "train"}
    if few := bool(drawn) and len(found) <= len(drawn):
        of = f"one for each of train, {listed(drawn)}" if drawn else ""
        reader.report(f"expected at least {len(drawn) + 1} different groups, {of}, got {len(found)}", "group")
    return not few


def _leave_out_unlabelled(reader: Reader, rows: list[Row]) -> tuple[list[Row], tuple[str, ...]]:
    """Leave out splits without labels; return the remaining rows, and the splits that are left out.

    If all labels of a split are -1 and the training split has no such class, they count as missing: public
    test sets hide labels like this.
    """
    labels: dict[str, set[Any]] = {split: set() for split in SPLITS}
    for row in rows:
        labels[row.split].update(row.target if isinstance(row.target, tuple) else (row.target,))
    unknown, counts = {"-1", -1.0, None} - (labels["train"] - {None}), Counter(row.split for row in rows)
    left_out = tuple(split for split in SPLITS[1:] if counts[split] and not labels[split] - unknown)
    for split in left_out:
        reader.notes.append(
            f"{split}: {plural(counts[split], 'row')} left out, since none has a label: "
            "training rows are held out instead"
        )
    return [row for row in rows if row.split not in left_out], left_out


def _with_shares(reader: Reader, layout: OwnLayout, asked: Mapping[str, Any], found: set[str]) -> OwnLayout:
    shares: dict[str, float] = {}
    for split in SPLITS[1:]:
        share = asked[split] if isinstance(asked[split], float) else None
        if split not in found:
            shares[f"{split}_share"] = _DEFAULT_SHARE if share is None else share
        elif share is not None:
            why = f"{split} rows are in the data already, so this share has no effect"
            reader.report(f"{why}: remove {split}", split)
    return layout.model_copy(update=shares)


def _warn_of_drawn(reader: Reader, drawn: Mapping[str, int]) -> None:
    """Warn of splits whose rows are drawn from train, although the data have other splits."""
    if drawn:
        numbers = listed(f"{count:,}" for count in drawn.values())
        confirmed = ", ".join(f"{split} = {_DEFAULT_SHARE}" for split in drawn)
        reader.warnings.append(
            f"the data have no {listed(drawn, 'or')} rows, so that {numbers} are drawn from train: "
            f"add some, or confirm this with {confirmed} in corpus"
        )


def _read_named(
    reader: Reader, named: _Rows, kind: RowKind, columns: tuple[str | None, str | None]
) -> tuple[OwnLayout, list[Row]] | None:
    """Read the rows of a corpus; return its layout and rows, or None after faults."""
    if (files := _find(reader, named)) is None:
        return None
    form, digests = files
    names = (columns[0] or "source", columns[1] or "target")
    if kind is PAIRS and form == "tsv" and columns == (None, None) and not (named.split or named.group):
        form, names = "pairs", ()
    layout = OwnLayout(
        form=form,
        train=digests.get("train", ()),
        dev=digests.get("dev", ()),
        test=digests.get("test", ()),
        columns=names,
        split=named.split,
        group=named.group,
        skips_bad_rows=named.bad_rows == "skip",
    )
    return _read_rows(reader, layout, kind, named.model_dump())


class _LabelledRows(_Rows):
    """Schema of `[task] corpus` with labelled rows in files or in a folder."""

    text: str = "text"
    """the column with the sequences"""
    label: str = "label"
    """the column with the labels"""


SEQUENCE_FORMS: tuple[type[StrictModel], ...] = (_LabelledRows,)
"""The forms of `[task] corpus` with labelled sequences."""


def read_sequences(
    diagnostics: Diagnostics, reader: Reader, table: Mapping[str, Any], kind: RowKind
) -> Read | None:
    """Read the user's labelled sequences; return the facts about them.

    A sequence has one class, one number, or a class for each token. None if faults are reported.
    """
    if not table.keys() & {"path", "train"}:
        reader.report('expected { path = "my.csv" }, or one file each for train, dev and test')
        return None
    named = diagnostics.validate(_LabelledRows, CORPUS, table)
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
        reader.report(f"expected at least two labels, got {', '.join(map(quoted, labels))} alone")
        return None
    facts = OwnSequences(
        layout=layout,
        rows=OwnCounts(**Counter(row.split for row in rows)),
        lists=any(isinstance(row.sequence, Tokens) for row in rows),
        symbols=len({token for row in train for token in row.sequence.split()}),
        classes=None if kind is NUMBERS else len(labels),
    )
    return facts, summarise_rows(rows, kind, reader.tokens)


class _PairRows(_Rows):
    """Schema of `[task] corpus` with sentence pairs in files or in a folder.

    By default the columns are the first two of a TSV.
    """

    source: str | None = None
    """the column with the sentences"""
    target: str | None = None
    """the column with their translations"""


class _TwoFiles(StrictModel):
    """Schema of the names of two line-aligned files: sentences and their translations."""

    source: str
    """the file with the sentences, one a line"""
    target: str
    """the file with their translations, one a line"""


class _TwoFilesInShares(HeldOut, _TwoFiles):
    """Schema of `[task] corpus` with two line-aligned files, and shares of lines for dev and test."""


class _SixFiles(StrictModel):
    train: _TwoFiles
    """the two files of the train split"""
    dev: _TwoFiles
    """the two files of the dev split"""
    test: _TwoFiles
    """the two files of the test split"""


PAIR_FORMS: tuple[type[StrictModel], ...] = (_PairRows, _TwoFilesInShares, _SixFiles)
"""The forms of `[task] corpus` with sentence pairs."""


def read_pairs(diagnostics: Diagnostics, reader: Reader, table: Mapping[str, Any]) -> Read | None:
    """Read the user's sentence pairs; return the facts about them.

    The pairs are in one data file, in one for each split, or in line-aligned files of two languages. None if
    faults are reported.
    """
    found = None
    if isinstance(table.get("train"), Mapping):
        six = diagnostics.validate(_SixFiles, CORPUS, table)
        found = six and _read_lines(reader, {(split,): getattr(six, split) for split in SPLITS})
    elif table.keys() & {"path", "train"}:
        named = diagnostics.validate(_PairRows, CORPUS, table)
        found = named and _read_named(reader, named, PAIRS, (named.source, named.target))
    elif table.keys() & {"source", "target"}:
        two = diagnostics.validate(_TwoFilesInShares, CORPUS, table)
        found = two and _read_lines(reader, {(): two}, two.model_dump())
    else:
        forms = '{ source = "my.en", target = "my.fr" }, { path = "my.tsv" }, or files for each split'
        reader.report(f"expected {forms}")
    if not found:
        return None
    layout, rows = found
    return OwnPairs(layout=layout, rows=OwnCounts(**Counter(row.split for row in rows))), summarise_pairs(
        rows, reader.tokens
    )


def _read_lines(
    reader: Reader, named: Mapping[tuple[str, ...], _TwoFiles], shares: Mapping[str, Any] | None = None
) -> tuple[OwnLayout, list[Row]] | None:
    digests: dict[str, tuple[str, ...]] = {}
    for keys, files in named.items():
        read = [
            reader.read(reader.locate(getattr(files, side)), *keys, side) for side in ("source", "target")
        ]
        digests[keys[0] if keys else "train"] = tuple(filter(None, read))
    if any(len(each) < 2 for each in digests.values()):
        return None
    return _read_rows(
        reader, OwnLayout.model_validate({"form": "lines", "columns": (), **digests}), PAIRS, shares
    )
