"""Rows of a user's data, such as a sequence with its label.

They are checked when a study is read, and again when its trials train.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...errors import printable
from ..catalog.datasets import HeldOutFractions
from ..catalog.own_corpora import SPLITS, OwnLayout
from .cells import MOST_FAULTS, NumberedRows, RowsError, read_delimited, read_json_lines

NOT_SCORED = "-100"
"""A token's label that is neither trained nor scored, as in Hugging Face `transformers`; null is equivalent.
"""

_MAX_NUMBER = 1e18
"""The largest size of a label that is a number: its square is finite in 32 bits."""

_SHOWN = 40
USUAL_SPLITS = {**{name: name for name in SPLITS}, **dict.fromkeys(("validation", "valid", "val"), "dev")}
"""The split for each of its usual names, such as dev for `validation`."""


_VECTORS = "; sequences of real numbers or vectors need a task plug-in (docs/how-to/plug-ins-tasks.md)"

_SURROGATE = re.compile("[\ud800-\udfff]")


class Tokens(str):
    """A list of tokens, as one string with spaces between them."""

    __slots__ = ()


def read_sequence(value: Any) -> str:  # noqa: ANN401 -- whatever stands in a file
    """Return a sequence from a non-blank text or a list of tokens; raise ValueError for another value."""
    if isinstance(value, str) and value.strip():
        return _checked(value)
    if not isinstance(value, list) or not value:
        got = "an empty list" if value == [] else shown(value)
        raise ValueError(f"expected a text or a non-empty list of tokens, got {got}")
    for token in value:
        if not isinstance(token, str | int) or isinstance(token, bool) or str(token).split() != [str(token)]:
            advice = _VECTORS if isinstance(token, float | list) else ""
            raise ValueError(
                f"expected whole numbers or texts without spaces as tokens, got {shown(token)}{advice}"
            )
    return Tokens(_checked(" ".join(map(str, value))))


def read_sentence(value: Any) -> str | None:  # noqa: ANN401 -- as above
    """Return a text of one line as a sentence, or None if it is blank.

    Pairs with a blank sentence are left out. Raise ValueError for any other value.
    """
    if not isinstance(value, str) or "\n" in value.strip():
        raise ValueError(f"expected a text without line breaks, got {shown(value)}")
    return _checked(value.strip("\n")) if value.strip() else None


def is_missing(value: Any) -> bool:  # noqa: ANN401 -- as above
    """Return whether a label is missing: null, a blank text, or pandas' NaN."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value))


def read_label(value: Any) -> str:  # noqa: ANN401 -- as above
    """Return a label as the name of a class.

    It may be a non-blank text, a whole number or a boolean. Raise ValueError for any other value.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # what pandas makes of whole numbers where some are missing
    if isinstance(value, str | int) and (text := str(value).strip()):
        return _checked(text)
    raise ValueError(f"expected a label, got {shown(value)}")


def read_tags(value: Any) -> tuple[str | None, ...]:  # noqa: ANN401 -- as above
    """Return each token's class, from a list or a space-separated text; None for one that is not scored."""
    found = value.split() if isinstance(value, str) else value
    if not isinstance(found, list) or not found:
        raise ValueError(f"expected a list of labels, or a text with spaces between them, got {shown(value)}")
    labels = (None if label is None else read_label(label) for label in found)
    return tuple(None if label == NOT_SCORED else label for label in labels)


def read_number(value: Any) -> float:  # noqa: ANN401 -- as above
    """Return a value as a finite number of at most `_MAX_NUMBER` in size, or raise ValueError."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ValueError, OverflowError):
            number = math.nan
        if abs(number) <= _MAX_NUMBER:
            return number
        if math.isfinite(number):
            raise ValueError(f"expected a number of at most {_MAX_NUMBER:g} in size, got {shown(value)}")
    raise ValueError(f"expected a number, got {shown(value)}")


def read_split(value: Any, names: Sequence[str] = ()) -> str | None:  # noqa: ANN401 -- as above
    """Return the split (train, dev or test) that a value names.

    `names` are the data's own names of the three splits; values that are not among them give None.
    """
    if names:
        return dict(zip(names, SPLITS, strict=True)).get(str(value)) if value else None
    if isinstance(value, str) and (name := USUAL_SPLITS.get(value.strip().lower())):
        return name
    raise ValueError(f"expected train, dev (or validation) or test, got {shown(value)}")


def shown(value: Any) -> str:  # noqa: ANN401 -- as above
    """Return the beginning of a value in printable characters, for a message."""
    if value is None or value == "":
        return "an empty text" if value == "" else "none"
    text = repr(value[:_SHOWN] if isinstance(value, str | bytes | list) else value)
    text = printable(text[: _SHOWN + 1])
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _checked(text: str) -> str:
    """Return the text, or raise ValueError for invalid Unicode (half of a surrogate pair)."""
    if not text.isascii() and (half := _SURROGATE.search(text)):
        place = f"character {half.start() + 1:,}"
        raise ValueError(f"expected text, got half of a surrogate pair, \\u{ord(half[0]):04x}, at {place}")
    return text


class Row(NamedTuple):
    """A row of data: its split, its sequence, and its target."""

    split: str
    sequence: str
    target: Any


@dataclass(frozen=True, slots=True)
class RowFault:
    """A faulty value of a row. In place of a row's target, it is the fault of a missing label.

    `unit` is the word for a row, and `number` counts rows from 1. `file` is empty while it is not known.
    """

    unit: str
    number: int
    column: str
    message: str
    file: str = ""

    @property
    def expected(self) -> str:
        """The message without the value."""
        return self.message.partition(", got ")[0]


def describe_faults(faults: Iterable[RowFault]) -> list[str]:
    """Describe faults of rows, with one message for equal faults, and for many that differ only by value."""
    found = list(faults)
    alike = Counter(each.expected for each in found)
    groups: dict[tuple[str, str, str, str], list[RowFault]] = {}
    for each in found:
        message = each.message if alike[each.expected] <= MOST_FAULTS else each.expected
        groups.setdefault((each.file, each.unit, each.column, message), []).append(each)
    messages = list[str]()
    for (file, unit, column, _), group in groups.items():
        more = f" and {len(group) - MOST_FAULTS:,} more" if len(group) > MOST_FAULTS else ""
        numbers = ", ".join(f"{each.number:,}" for each in group[:MOST_FAULTS])
        values = {each.message for each in group}
        message = group[0].message.replace(", got ", ", got for example " if len(values) > 1 else ", got ", 1)
        rows = f"{unit}{'s' * (len(group) > 1)} {numbers}{more}"
        messages.append(f"{f'{file}: ' if file else ''}{rows}, column {column}: {message}")
    return messages


@dataclass(frozen=True, slots=True, kw_only=True)
class RowKind:
    """A kind of rows, such as sentence pairs: the functions that read a row's sequence and target.

    They raise ValueError for an invalid value. A row with a None is left out. `aligned` rows have a target
    for each token. `labels` is true if the targets are labels, not sentences.
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


def iter_parts(layout: OwnLayout) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the split and the SHA-256 of each file, or of each pair of line-aligned files.

    If the rows have a column with splits, that column overrides the split of the file.
    """
    together = 2 if layout.form == "lines" else 1
    for split in SPLITS:
        digests: tuple[str, ...] = getattr(layout, split)
        for place in range(0, len(digests), together):
            yield split, digests[place : place + together]


def read_part(
    layout: OwnLayout, kind: RowKind, split: str, *data: bytes, keep_unlabelled: bool = False
) -> list[Row]:
    """Return the rows of one file, or of two line-aligned files.

    The rows have the split of their file, or the one in their split column. With `keep_unlabelled`, the
    target of a dev or test row without a label is a `RowFault`. Raise RowsError with the other faults,
    without the file's name. If they are in a split that has labels, missing ones are among them.
    """
    names = list(layout.columns) or ["source", "target"]
    columns = [*layout.columns, *([] if layout.split is None else [layout.split])]
    unit, readers = "row" if layout.form == "parquet" else "line", (kind.read_sequence, kind.read_target)
    rows, faults = list[Row](), list[RowFault]()
    for number, values in _numbered_rows(layout.form, data, columns):
        where = split
        if layout.split is not None:
            try:
                where = read_split(values[-1], layout.split_names)
            except ValueError as error:
                faults.append(RowFault(unit, number, layout.split, str(error)))
                continue
        if where is None or where in layout.left_out:
            continue
        found, wrong = list[Any](), list[RowFault]()
        for name, read, value in zip(names, readers, values, strict=False):
            try:
                found.append(read(value))
            except ValueError as error:
                advice = f"; fill it in, or remove the {unit}" if is_missing(value) else ""
                wrong.append(RowFault(unit, number, name, f"{error}{advice}"))
        if not wrong and kind.aligned and (tokens := len(found[0].split())) != len(found[1]):
            message = f"expected {tokens:,} labels, one for each token, got {len(found[1]):,}"
            wrong.append(RowFault(unit, number, names[1], message))
        if not wrong and None not in found:
            rows.append(Row(where, *found))
        elif keep_unlabelled and where != "train" and kind.labels and is_missing(values[1]):
            rows.append(Row(where, found[0] if found else "", wrong.pop()))
        faults += wrong
    if faults:
        labelled = {row.split for row in rows if not isinstance(row.target, RowFault)}
        lacking = [row.target for row in rows if row.split in labelled and isinstance(row.target, RowFault)]
        raise RowsError(describe_faults([*faults, *lacking]))
    return rows


def draw_split(layout: OwnLayout, row: Row) -> Row:
    """Return the row with its final split, after rows are held out from training.

    Rows are held out for a split that has no rows of its own.
    """
    if row.split != "train" or not (layout.dev_share or layout.test_share):
        return row
    shares = HeldOutFractions(dev=layout.dev_share, test=layout.test_share)
    return row._replace(split=shares.split_of(row.sequence))


def _numbered_rows(form: str, data: Sequence[bytes], columns: Sequence[str]) -> NumberedRows:
    if form == "parquet":
        from .columnar import read_parquet  # noqa: PLC0415 -- pyarrow loads slowly

        return read_parquet(data[0], columns)
    texts = [each.decode().removeprefix("\ufeff") for each in data]
    if form == "jsonl":
        return read_json_lines(texts[0], columns)
    if form != "lines":
        return read_delimited(texts[0], columns, "tsv" if form == "pairs" else form)
    sides = [[line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] for text in texts]
    lines, others = map(len, sides)
    if lines != others:
        raise RowsError([f"expected equally many lines in both files, got {lines:,} and {others:,}"])
    return list(enumerate(zip(*sides, strict=True), start=1))
