"""Numbers that papers have published, by paper, table, row and column.

Results that activemem measures are in stores instead.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...errors import nearest_hint

_DEVIATION = re.compile(r"std ([0-9.]+) ")
_RUNS = re.compile(r"(?:mean of|over) (\d+) (?:runs|trainings|seeds)")
_WORDS = "printed as "  # the note of a number that is printed as words begins with this
_MILLIONS = "M"  # the end of a number that is printed in millions

HIGHER_IS_BETTER_BY_UNIT: Mapping[str, bool | None] = {
    "nats a position": False,
    "ppl": False,
    "nats": False,
    "bpc": False,
    "bleu": True,
    "tokens": True,
    "epochs": False,
    "fraction": None,
    "scaled accuracy": True,
    "parameters": None,
}
"""Whether higher numbers are better, by the unit of published numbers; None if it depends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedNumber:
    """One cell of a published table: a number, or the words that the paper prints instead.

    For words, `value` is None, `text` is "", and the words are in `note`.
    """

    value: float | None
    text: str
    unit: str
    note: str

    @property
    def deviation_text(self) -> str:
        """The deviation after the number, such as 0.3 in `1.2 ± 0.3`; "" without one."""
        found = _DEVIATION.match(self.note)
        return found[1] if found else ""

    @property
    def runs(self) -> int:
        """The number of trainings whose mean is printed; 1 if it is unknown."""
        found = _RUNS.search(self.note)
        return int(found[1]) if found else 1

    @property
    def remaining_note(self) -> str:
        """The part of `note` that `text_with_deviation` does not show, or ""."""
        return _DEVIATION.sub("", "" if not self.text else self.note)

    @property
    def text_with_deviation(self) -> str:
        """The printed number with its deviation, or the words that the paper prints instead of a number."""
        if not self.text:
            return self.note.removeprefix(_WORDS)
        return f"{self.text} ± {self.deviation_text}" if self.deviation_text else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """One table of a paper: its rows and columns in the paper's order, and the number in each cell."""

    paper: str
    name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[str, str], PublishedNumber]


@cache
def published_tables() -> Mapping[tuple[str, str], PublishedTable]:
    """Return all tables in `published.csv`, by the name of the paper and the name of the table."""
    text = (Path(__file__).parents[1] / "published.csv").read_text(encoding="utf-8")
    cells: dict[tuple[str, str], dict[tuple[str, str], PublishedNumber]] = {}
    for line in csv.DictReader(text.splitlines()):
        number = PublishedNumber(
            value=_number(line["value"]) if line["value"] else None,
            text=line["value"],
            unit=line["unit"],
            note=line["note"],
        )
        cells.setdefault((line["paper"], line["table"]), {})[line["row"], line["column"]] = number
    return {
        (paper, name): PublishedTable(
            paper=paper,
            name=name,
            rows=tuple(dict.fromkeys(row for row, _ in table)),
            columns=tuple(dict.fromkeys(column for _, column in table)),
            cells=table,
        )
        for (paper, name), table in cells.items()
    }


def _number(text: str) -> float:
    """Return the number that a paper prints, such as `39M` for 39 million."""
    return float(text.removesuffix(_MILLIONS)) * (1e6 if text.endswith(_MILLIONS) else 1)


def published_faults(name: str, paper: str | None) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield a fault of the key `published` if the study's paper has no table with this name."""
    known = [table for own, table in published_tables() if own == paper]
    if name not in known:
        whose = f" of {paper}" if paper else ": [study] names no paper"
        yield ("published",), f"no published table '{name}'{whose}{nearest_hint(name, known)}"


def match_published_keys(levels: Iterable[str], keys: Iterable[str]) -> dict[str, str]:
    """Match a factor's levels to row or column keys of a published table.

    Return a mapping from each matched level to its key. Levels that match no key are left out. A level
    matches an equal key, else the key that names its blocks: `conv(k=20) + sa` is `sa+conv`. Two levels of
    the same blocks, such as `conv(k=3)` and `conv(k=20)`, match nothing, because the key is ambiguous.
    """
    known = list(keys)
    by_blocks = {tuple(sorted(part.strip() for part in key.split("+"))): key for key in known}
    found = {level: level if level in known else by_blocks.get(_blocks(level)) for level in levels}
    times = Counter(found.values())
    return {
        level: key for level, key in found.items() if key is not None and (level == key or times[key] == 1)
    }


_ARGUMENTS = re.compile(r"(?<=\w)\([^()]*\)")


def _blocks(level: str) -> tuple[str, ...]:
    """Return the sorted block names in a level such as `conv(k=20) + sa`; () for any other level."""
    bare = level
    while (shorter := _ARGUMENTS.sub("", bare)) != bare:
        bare = shorter
    names = tuple(sorted(part.strip() for part in bare.split("+")))
    return names if all(map(str.isidentifier, names)) else ()
