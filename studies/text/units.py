"""Formatting of numbers, units and columns, and reading of times."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, takewhile, zip_longest
from textwrap import wrap

from ...grammar import Reach

WIDTH = 80
"""The number of columns for output, if names allow it."""

_UNITS = (("s", 60), ("min", 60), ("h", 48), ("days", math.inf))
"""Each unit of time, and the value above which the next unit is used."""

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]*)?)\s*(s|m|min|h)?", re.ASCII)
_SECONDS = {None: 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}

_PREFIXES = (("", 1e0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15))


def format_duration(seconds: float) -> str:
    """Return a time with its unit: `40 s`, `31 min`, `14 h`.

    Short times have at most two digits. A positive time is at least 1 s.
    """
    value = max(seconds, 1.0) if seconds > 0 else 0.0
    for unit, limit in _UNITS:
        if round(value) < limit:
            return f"{value:.1f} {unit}" if value < 9.95 and unit != "s" else f"{value:,.0f} {unit}"
        value /= 24 if unit == "h" else 60
    raise AssertionError("the last unit suits any time")


def format_core_hours(core_seconds: float) -> str:
    """Return the time that all cores compute together, such as `3.1 core-hours`."""
    hours = core_seconds / 3600
    if hours < 0.05:
        return "less than 0.1 core-hours"
    return f"{hours:,.{0 if hours >= 99.5 else 1}f} core-hours"


def parse_duration(text: str) -> float:
    """Return the seconds of a time such as `30s`, `5m`, `1.5h` or `90`; raise ValueError for other texts."""
    if found := _DURATION.fullmatch(text.strip()):
        return float(found[1]) * _SECONDS[found[2]]
    raise ValueError(f"expected a time such as 30s, 5m or 1h, got {text!r}")


def si_prefix(value: float) -> tuple[str, float]:
    """Return the SI prefix for a number, such as "k", and the prefix's factor."""
    fitting = [(name, size) for name, size in _PREFIXES if abs(value) >= size]
    return fitting[-1] if fitting else _PREFIXES[0]


def format_quantity(value: float, unit: str) -> str:
    """Return a number with three digits, an SI prefix and its unit: `12.3 GFLOPs`.

    Zero and infinity have neither digits nor a prefix: `0 FLOPs`.
    """
    if not value or math.isinf(value):
        return f"{value:z.0f} {unit}".replace("-", "−").replace("inf", "∞")
    rounded = float(f"{value:.3g}")
    name, size = si_prefix(rounded)
    shown = abs(rounded / size)
    # with "z", a negative number that rounds to 0 has no minus sign
    text = format(rounded / size, f"z,.{2 if shown < 10 else 1 if shown < 100 else 0}f")
    return f"{text} {name}{unit}".replace("-", "−")


def format_bytes(count: float) -> str:
    """Return a number of bytes as text: `8.2 kB`."""
    name, size = si_prefix(count)
    return f"{count / size:.1f} {name}B" if name else f"{count:.0f} B"


def labelled_lines(label: str, text: str, width: int = WIDTH) -> list[str]:
    """Wrap a text into lines after a label, as in `  search 40 points …`.

    Return no lines for an empty text. The text after a line break is a command, which stays on one line so
    that it can be copied.
    """
    first = f"  {label:<6} "
    indent = " " * len(first)
    words, _, command = text.partition("\n")
    lines = wrap(words, width, initial_indent=first, subsequent_indent=indent)
    return [*lines, indent + command] if command else lines


def align_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of texts as lines with aligned columns. A row may have fewer texts than others."""
    widths = [max(map(len, column)) for column in zip_longest(*rows, fillvalue="")]
    lines = ("  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=False)) for row in rows)
    return [line.rstrip() for line in lines]


def side_by_side(
    columns: Sequence[Sequence[str]], names: Sequence[str] = (), *, width: int = WIDTH, gap: int = 2
) -> Iterator[list[str]]:
    """Split a wide table into blocks that fit in the width; yield their lines.

    Each column is a list of padded texts. `names` are repeated as the first column of every block. A column
    that is wider than the width has a block of its own.
    """
    label = max(map(len, names), default=0)
    begin = 0
    while begin < len(columns):
        end, used = begin, label + gap * bool(names)
        while end < len(columns) and (end == begin or used + len(columns[end][0]) <= width):
            used, end = used + len(columns[end][0]) + gap, end + 1
        block = [[f"{name:<{label}}" for name in names]] if names else []
        yield [(" " * gap).join(row).rstrip() for row in zip(*block, *columns[begin:end], strict=True)]
        begin = end


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: `1 trial`, `2 trials`, `3 batches`."""
    ending = "es" if noun.endswith(("s", "x", "sh", "tch")) else "s"
    return f"{count:,} {noun}{'' if count == 1 else ending}"


def listed(words: Iterable[object], joint: str = "and") -> str:
    """Join words as in a sentence: `3`, `3 and 5`, `3, 5 and 8`."""
    *others, last = map(str, words)
    return f"{', '.join(others)} {joint} {last}" if others else last


def truncate(text: str, width: int) -> str:
    """Return a text, with an ellipsis at its end if it is too wide."""
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


def abbreviate_all(texts: Sequence[str], width: int) -> list[str]:
    """Shorten long texts by an ellipsis in the middle.

    Different texts stay different. A third of the width is kept for the end of a text, or as much of it as
    keeps texts different. Texts that differ only in their middle lose the beginning that they share instead.
    If all this leaves some alike, each begins with its number.
    """
    if all(len(text) <= width for text in texts):
        return list(texts)
    room = max(width - 1, 0)
    ends = sorted(range(room + 1), key=lambda end: abs(end - room // 3))

    def abbreviated(text: str, end: int) -> str:
        return text if len(text) <= width else text[: max(room - end, 0)] + "…" + text[len(text) - end :]

    def without_shared(text: str, short: str, kept: int) -> str:
        alike = [other for other, its_short in zip(texts, first, strict=True) if its_short == short]
        common = takewhile(lambda signs: len(set(signs)) == 1, zip(*alike, strict=False))
        shared = len(re.sub(r"[\w=]+$", "", "".join(signs[0] for signs in common)))  # whole words
        return (
            short if text == short or shared <= kept else truncate(text[:kept] + "…" + text[shared:], width)
        )

    at_the_end = ([abbreviated(text, end) for text in texts] for end in ends)
    first = next(at_the_end)
    inside = ([without_shared(*each, kept) for each in zip(texts, first, strict=True)] for kept in ends)
    candidates = chain([first], at_the_end, inside)
    if found := next((short for short in candidates if len(set(short)) == len(set(texts))), None):
        return found
    numbers = [f"{texts.index(text) + 1}: " for text in texts]
    return [truncate(number + text, width) for number, text in zip(numbers, texts, strict=True)]


def format_reach(value: Reach) -> str:
    """Format the number of tokens that a model sees to each side: `all`, `0` or `9 ← · → 10`."""
    if value.left == value.right == math.inf:
        return "all"
    if value.left == value.right == 0:
        return "0"
    return f"{_side(value.left)} ← · → {_side(value.right)}"


def reach_as_json(value: Reach) -> dict[str, int | str]:
    """Return how many tokens a model sees to each side: a number or "all"."""
    sides = {"left": value.left, "right": value.right}
    return {side: "all" if tokens == math.inf else int(tokens) for side, tokens in sides.items()}


def _side(tokens: float) -> str:
    return "all" if tokens == math.inf else f"{tokens:.0f}"


def number_range(numbers: Sequence[int]) -> str:
    """Return the range of sorted numbers as text, such as `3 to 9`."""
    return f"{numbers[0]}" if numbers[0] == numbers[-1] else f"{numbers[0]} to {numbers[-1]}"


def degrees_of_freedom(numbers: Sequence[int]) -> str:
    """Describe sorted degrees of freedom: `14 to 21 degrees of freedom`."""
    return f"{number_range(numbers)} degree{'' if numbers[-1] == 1 else 's'} of freedom"
