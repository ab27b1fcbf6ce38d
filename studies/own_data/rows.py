"""Rows of a user's data, such as a sequence with its label.

They are checked when a study is read, and again when its trials train.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..catalog.datasets import HeldOutFractions, source_key
from ..catalog.own_corpora import SPLITS, OwnLayout
from ..text.units import plural
from .files import USUAL_SPLITS
from .formats import FaultyValueError, iter_rows, shown

NOT_SCORED = "-100"
"""A token's label that is neither trained nor scored, as in Hugging Face `transformers`; null is equivalent.
"""

MOST_FAULTS = 5
"""The number of messages about rows that are listed, and of the lines and the values in each."""

_MOST_FAULTY = 1_000
"""The number of faults after which no further row is read."""

_MAX_NUMBER = 1e18
"""The largest size of a label that is a number: its square is finite in 32 bits."""

_VECTORS = "; sequences of real numbers or vectors need a task plug-in (docs/how-to/plug-ins-tasks.md)"

_SURROGATE = re.compile("[\ud800-\udfff]")


class Tokens(str):
    """A list of tokens, as one string with spaces between them."""

    __slots__ = ()


def read_sequence(value: Any) -> str:  # noqa: ANN401 -- whatever stands in a file
    """Return a sequence from a non-blank text or a list of tokens; or raise FaultyValueError."""
    if isinstance(value, str) and value.strip():
        return _checked(value)
    if not isinstance(value, list) or not value:
        raise FaultyValueError(
            "a text or a non-empty list of tokens", "an empty list" if value == [] else shown(value)
        )
    for token in value:
        if not isinstance(token, str | int) or isinstance(token, bool) or str(token).split() != [str(token)]:
            advice = _VECTORS if isinstance(token, float | list) else ""
            raise FaultyValueError("whole numbers or texts without spaces as tokens", shown(token), advice)
    return Tokens(_checked(" ".join(map(str, value))))


def read_sentence(value: Any) -> str | None:  # noqa: ANN401 -- as above
    """Return a text of one line as a sentence, or None if it is blank.

    Pairs with a blank sentence are left out. Raise FaultyValueError for any other value.
    """
    if not isinstance(value, str) or "\n" in value.strip():
        raise FaultyValueError("a text without line breaks", shown(value))
    return _checked(value.strip("\n")) if value.strip() else None


def is_missing(value: Any) -> bool:  # noqa: ANN401 -- as above
    """Return whether a label is missing: null, a blank text, or pandas' NaN."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value))


def read_label(value: Any) -> str:  # noqa: ANN401 -- as above
    """Return a label as the name of a class.

    It may be a non-blank text, a whole number or a boolean. Raise FaultyValueError for any other value.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # what pandas makes of whole numbers where some are missing
    if isinstance(value, str | int) and (text := str(value).strip()):
        return _checked(text)
    raise FaultyValueError("a label", shown(value))


def read_tags(value: Any) -> tuple[str | None, ...]:  # noqa: ANN401 -- as above
    """Return each token's class, from a list or a space-separated text; None for one that is not scored."""
    found = value.split() if isinstance(value, str) else value
    if not isinstance(found, list) or not found:
        raise FaultyValueError("a list of labels, or a text with spaces between them", shown(value))
    labels = (None if label is None else read_label(label) for label in found)
    return tuple(None if label == NOT_SCORED else label for label in labels)


def read_number(value: Any) -> float:  # noqa: ANN401 -- as above
    """Return a value as a finite number of at most `_MAX_NUMBER` in size, or raise FaultyValueError."""
    number = math.nan
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        with suppress(ValueError, OverflowError):
            number = float(value)
    if abs(number) <= _MAX_NUMBER:
        return number
    size = f" of at most {_MAX_NUMBER:g} in size" if math.isfinite(number) else ""
    raise FaultyValueError(f"a number{size}", shown(value))


def read_group(value: Any) -> str:  # noqa: ANN401 -- as above
    """Return the name of a row's group: a non-blank text, a whole number or a boolean."""
    try:
        return read_label(value)
    except FaultyValueError as fault:
        raise FaultyValueError("the name of a group", fault.got) from None


def read_split(value: Any) -> str:  # noqa: ANN401 -- as above
    """Return the split (train, dev or test) that a value names."""
    if isinstance(value, str) and (name := USUAL_SPLITS.get(value.strip().lower())):
        return name
    raise FaultyValueError("train, dev (or validation) or test", shown(value))


def _checked(text: str) -> str:
    """Return the text, or raise FaultyValueError for invalid Unicode (half of a surrogate pair)."""
    if not text.isascii() and (half := _SURROGATE.search(text)):
        got = f"half of a surrogate pair, \\u{ord(half[0]):04x}, at character {half.start() + 1:,}"
        raise FaultyValueError("text", got)
    return text


class Row(NamedTuple):
    """A row of data: its split, sequence, target (None without a label) and group ("" without one)."""

    split: str
    sequence: str
    target: Any
    group: str = ""


class FoundRows(NamedTuple):
    """The rows of a corpus, and descriptions of the faults of other rows.

    `skipped` counts the rows that the corpus skips because of faults; `skips` describe the first of them.
    """

    rows: list[Row]
    faults: list[str]
    skipped: int = 0
    skips: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RowKind:
    """A kind of rows, such as sentence pairs: the functions that read a row's sequence and target.

    They raise FaultyValueError for an invalid value. A row with a None is left out. `aligned` rows have a
    target for each token. `labels` is true if the targets are labels, not sentences.
    """

    read_sequence: Callable[[Any], str | None]
    read_target: Callable[[Any], Any]
    aligned: bool = False
    labels: bool = True


CLASSES = RowKind(read_sequence=read_sequence, read_target=read_label)
"""A sequence and its class."""

NUMBERS = RowKind(read_sequence=read_sequence, read_target=read_number)
"""A sequence and a number."""

TAGS = RowKind(read_sequence=read_sequence, read_target=read_tags, aligned=True)
"""Tokens (a list, or separated by spaces in a text) and a class for each."""

PAIRS = RowKind(read_sequence=read_sentence, read_target=read_sentence, labels=False)
"""A sentence and its translation."""


class _Faults:
    """Faults of rows, in which those that differ only in their line and value are together."""

    def __init__(self, unit: str) -> None:
        self._unit, self.count = unit, 0
        self._alike: dict[tuple[str, str, str, str], list[tuple[int, str]]] = {}

    def add(self, fault: FaultyValueError, file: str, number: int, column: str = "") -> None:
        """Add a fault of the row or line with this number; 0 stands for the whole file."""
        self.count += 1
        alike = self._alike.setdefault((file, column, fault.expected, fault.advice), [])
        alike.append((number, fault.got))

    def describe(self, *, all_are_read: bool = False) -> list[str]:
        """Describe the faults, with one message for those that are alike."""
        messages = list[str]()
        for (file, column, expected, advice), alike in self._alike.items():
            numbers, values = zip(*alike[:MOST_FAULTS], strict=True)
            more = f" and {len(alike) - MOST_FAULTS:,} more" if len(alike) > MOST_FAULTS else ""
            rows = f"{self._unit}{'s' * (len(alike) > 1)} {', '.join(f'{each:,}' for each in numbers)}{more}"
            where = ", ".join([rows] * (numbers[0] > 0) + [f"column {column}"] * (column != ""))
            got = ", ".join(dict.fromkeys(values)) + (", …" if more and len(set(values)) > 1 else "")
            messages.append(": ".join(filter(None, (file, where, f"expected {expected}, got {got}{advice}"))))
        if (left := len(messages) - MOST_FAULTS) > 0:
            messages[MOST_FAULTS:] = [f"… and {plural(left, 'more fault')}"]
        if self.count >= _MOST_FAULTY and not all_are_read:
            messages.append(f"after {_MOST_FAULTY:,} faults the rest is not read")
        return messages


def read_rows(
    layout: OwnLayout,
    kind: RowKind,
    open_file: Callable[[str], tuple[str, bytes]],
    *,
    keep_unlabelled: bool = False,
) -> FoundRows:
    """Return the rows of all files, each with its split, and descriptions of the faults of other rows.

    The split of a row is that of its file, or the one in its split column. Rows are held out from training
    for a split that gets a share of them. If the layout skips bad rows, only faults of whole files are
    faults, and every row is read. `open_file` returns the name and the bytes of the file with a
    SHA-256. With `keep_unlabelled`, dev and test rows without a label have the target None; else a missing
    label is a fault.
    """
    names = layout.columns or ("source", "target")
    columns = [*layout.columns, *filter(None, (layout.split, layout.group))]
    unit = "row" if layout.form == "parquet" else "line"
    rows, faults, of_files, skipped = list[Row](), _Faults(unit), _Faults(unit), 0
    skips = layout.skips_bad_rows

    def read(reader: Callable[[Any], Any], value: Any, *place: Any) -> Any:  # noqa: ANN401 -- as above
        if isinstance(value, FaultyValueError):  # the row has no such key
            faults.add(value, *place[:2])
            return None
        try:
            return reader(value)
        except FaultyValueError as fault:
            if is_missing(value):
                fault.advice += f"; fill it in, or remove the {unit}"
            faults.add(fault, *place)
            return None

    for where, files, data in _iter_parts(layout, open_file):
        for number, values in iter_rows(layout.form, data, columns):
            if faults.count >= _MOST_FAULTY and not skips:
                break
            if isinstance(values, FaultyValueError):
                is_skipped = skips and not values.of_file and number > 0
                (faults if is_skipped or not skips else of_files).add(values, files, number)
                skipped += is_skipped
                continue
            split, before = where, faults.count
            if layout.split is not None:
                split = read(read_split, values[2], files, number, layout.split)
            if split in layout.left_out:
                continue
            group = ""
            if layout.group is not None:
                group = read(read_group, values[-1], files, number, layout.group) or ""
            unlabelled = keep_unlabelled and split != "train" and kind.labels and is_missing(values[1])
            sequence = read(kind.read_sequence, values[0], files, number, names[0])
            target = None if unlabelled else read(kind.read_target, values[1], files, number, names[1])
            if faults.count > before:
                skipped += skips
                continue
            if split is None or sequence is None or (target is None and not unlabelled):
                continue
            if kind.aligned and target is not None and (tokens := len(sequence.split())) != len(target):
                fault = FaultyValueError(f"{tokens:,} labels, one for each token", f"{len(target):,}")
                faults.add(fault, files, number, names[1])
                skipped += skips
            else:
                rows.append(Row(split, sequence, target, group))
    rows = draw_splits(layout, rows)
    if not skips:
        return FoundRows(rows, faults.describe())
    return FoundRows(rows, of_files.describe(), skipped, tuple(faults.describe(all_are_read=True)))


def _iter_parts(
    layout: OwnLayout, open_file: Callable[[str], tuple[str, bytes]]
) -> Iterator[tuple[str, str, Sequence[bytes]]]:
    """Yield the split, the name and the bytes of each file, or of each pair of line-aligned files."""
    together = 2 if layout.form == "lines" else 1
    for split in SPLITS:
        digests: tuple[str, ...] = getattr(layout, split)
        for place in range(0, len(digests), together):
            names, data = zip(*map(open_file, digests[place : place + together]), strict=True)
            yield split, " and ".join(names), data


def draw_splits(layout: OwnLayout, rows: list[Row]) -> list[Row]:
    """Return the rows with their final splits, after rows are held out from training.

    Rows are held out for a split that has no rows of its own. If rows have groups, whole groups are held out:
    the share of their number, in the order of a hash, and at least one for each such split.
    """
    if not (layout.dev_share or layout.test_share):
        return rows
    if layout.group is not None:
        groups = sorted({group_key(row) for row in rows if row.split == "train"})
        drawn, first = dict[bytes, str](), 0
        for split, share in (("test", layout.test_share), ("dev", layout.dev_share)):
            count = max(1, round(share * len(groups))) if share else 0
            drawn |= dict.fromkeys(groups[first : first + count], split)
            first += count
        return [
            row._replace(split=drawn.get(group_key(row), "train")) if row.split == "train" else row
            for row in rows
        ]
    shares = HeldOutFractions(dev=layout.dev_share, test=layout.test_share)
    return [
        row._replace(split=shares.split_of(normal_form(row.sequence))) if row.split == "train" else row
        for row in rows
    ]


def normal_form(text: str) -> str:
    """Return a text in Unicode's form NFC, in which the two forms of an accented letter are one."""
    return unicodedata.normalize("NFC", text)


def group_key(row: Row) -> bytes:
    """Return the hash of a row's group, which is the same for all forms of its letters and spaces."""
    return source_key(normal_form(row.group))
