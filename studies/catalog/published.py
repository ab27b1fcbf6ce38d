"""Numbers that papers have published, by paper, table, row and column.

They are in CSV files: `published.csv` comes with the package, and a study may name further ones. Results that
activemem measures are in stores instead.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Literal

from ...errors import nearest, nearest_hint, printable, replace_unprintable
from ..text.units import listed
from .metrics import Metric, metric_family

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
    "percent": None,
}
"""Whether higher numbers are better, by the unit of published numbers; None if it depends."""

_UNIT_NAMES = {"%": "percent", "share": "fraction", "perplexity": "ppl", "bits per character": "bpc"}
"""Further names of units."""

_UNITS_OF_METRICS = {
    r".*_?bits_per_byte": "bits per byte",
    r".*bpc": "bpc",
    r".*perplexity.*": "ppl",
    r".*scaled_accuracy": "scaled accuracy",
    r".*loss_padded": "nats a position",
    r"(.*_)?loss": "nats",
    r".*bleu.*": "bleu",
    r"max_length": "tokens",
    r"solved_epochs": "epochs",
    r"parameters": "parameters",
    r".*_macro_f1": "fraction",
}
"""The units of metrics that are no shares, by a pattern of their names."""

PublishedSpread = Literal["sd", "se", "ci"]
"""What is printed after the ± of a published number: s.d., standard error, or half of a 95 % interval."""

SPREAD_WORDS: Mapping[str, str] = {
    "sd": "s.d.",
    "se": "standard error",
    "ci": "95 % interval",
    "": "of a kind that the file does not name",
}
"""The words for what is after the ±."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedNumber:
    """One cell of a published table: a number, or the words that the paper prints instead.

    `text` is as printed, as in `0.990`; for words, `value` is None. `spread` is the printed number after the
    ±, of `n` trainings. `source` says where in the paper it is. `line` is the line of the user's file, None
    for a number that comes with the package.
    """

    value: float | None
    text: str
    unit: str = ""
    note: str = ""
    spread: str = ""
    spread_is: PublishedSpread | Literal[""] = ""
    n: int | None = None
    source: str = ""
    line: int | None = None

    @property
    def text_with_deviation(self) -> str:
        """The printed number with its deviation, or the words that the paper prints instead of a number."""
        return f"{self.text} ± {self.spread}" if self.spread else self.text

    @property
    def spread_words(self) -> str:
        """What is after the ±, as in `± s.d., n = 10`, or `mean of 3 runs` without a spread, or ""."""
        if not self.spread:
            return f"mean of {self.n} runs" if self.n and self.n > 1 else ""
        return f"± {SPREAD_WORDS[self.spread_is]}{f', n = {self.n}' if self.n else ''}"

    @property
    def half_digit(self) -> float:
        """Half a unit of the last printed digit; 0 for words."""
        number = _NUMBER.fullmatch(_plain(self.text))
        if number is None:
            return 0.0
        return (
            float(Decimal(1).scaleb(int(Decimal(number[1]).as_tuple().exponent)))
            * _SCALES.get(number[2], 1.0)
            / 2
        )

    @property
    def remark(self) -> str:
        """What is after the ±, where the number is from, and its note."""
        return "; ".join(filter(None, (self.spread_words, self.source, self.note)))

    def unit_note(self, metric: Metric) -> str:
        """Return why the number is not comparable with values of a metric, or "".

        Its unit is another one. A number without a unit counts as in the metric's own, if it can be one.
        """
        low, high = metric.bounds
        if self.value is None or self.unit == (own := _unit_of(metric)) or (self.unit and not own):
            return ""
        if not self.unit:
            return (
                "" if low <= self.value <= high else f"no value of {metric.name}, and its unit is not named"
            )
        return f"in {self.unit}, not {own}"


def _unit_of(metric: Metric) -> str:
    if metric.is_share:
        return "fraction"
    family = metric_family(metric.name)
    return next((unit for form, unit in _UNITS_OF_METRICS.items() if re.fullmatch(form, family)), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """One table of a paper: its rows and columns in the paper's order, and the number in each cell."""

    paper: str
    name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[str, str], PublishedNumber]

    @property
    def is_own(self) -> bool:
        """Whether some of its numbers are in a file of the user's own."""
        return any(number.line is not None for number in self.cells.values())

    @property
    def title(self) -> str:
        """The paper and the table's name."""
        return f"{self.paper} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedNumbers:
    """The published tables that a study can show: those of its paper, and those in its own files.

    `texts` has the text of each of these files, by its name in the study file. If they are
    partial, further tables exist or are faulty, so that an unknown name is no fault.
    """

    paper: str | None = None
    tables: tuple[PublishedTable, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    is_partial: bool = False

    def find(self, name: str) -> tuple[PublishedTable, ...]:
        """Return the tables with a name, of any paper; or the one table that is named `PAPER:TABLE`."""
        found = tuple(each for each in self.tables if each.name == name)
        return found or tuple(each for each in self.tables if f"{each.paper}:{each.name}" == name)

    def faults(self, name: str) -> Iterator[str]:
        """Yield a fault if there is no table with this name."""
        if self.is_partial or self.find(name):
            return
        several = len({each.paper for each in self.tables}) > 1
        known = [f"{each.paper}:{each.name}" if several else each.name for each in self.tables]
        whose = f" of {listed(sorted({each.paper for each in self.tables}))}" if self.tables else ""
        whose = whose or ": [study] names no paper"
        yield f"no published table '{name}'{whose}{nearest_hint(name, known)}"


@cache
def published_tables() -> Mapping[tuple[str, str], PublishedTable]:
    """Return all tables in `published.csv`, by the name of the paper and the name of the table."""
    text = (Path(__file__).parents[1] / "published.csv").read_text(encoding="utf-8")
    numbers, faults = read_numbers(text)
    if faults:
        raise ValueError("\n".join(faults))
    return {
        key: _table(key, {cell: replace(number, line=None) for cell, number in cells.items()})
        for key, cells in numbers.items()
    }


def _table(key: tuple[str, str], cells: Mapping[tuple[str, str], PublishedNumber]) -> PublishedTable:
    return PublishedTable(
        paper=key[0],
        name=key[1],
        rows=tuple(dict.fromkeys(row for row, _ in cells)),
        columns=tuple(dict.fromkeys(column for _, column in cells)),
        cells=cells,
    )


def own_numbers(texts: Mapping[str, str], paper: str | None) -> tuple[PublishedNumbers, dict[str, list[str]]]:
    """Return the tables of the user's files and of a paper, and the faults of each file.

    `texts` has the text of each file by its name. The numbers of a file without the column `paper` are of
    `paper` or, without one, of a paper with the name of the file. A table that comes with the package gets
    the numbers of the files added.
    """
    merged: dict[tuple[str, str], dict[tuple[str, str], PublishedNumber]] = {}
    places: dict[tuple[str, str, str, str], str] = {}
    faults: dict[str, list[str]] = {}
    for file, text in texts.items():
        numbers, faults[file] = read_numbers(text, paper or Path(file).stem)
        for key, cells in numbers.items():
            shipped = published_tables().get(key)
            own = merged.setdefault(key, {})
            for cell, number in cells.items():
                place = places.setdefault((*key, *cell), file)
                if place != file or (shipped is not None and cell in shipped.cells):
                    where = "comes with activemem" if place == file else f"is in {place} as well"
                    what = f"{key[0]} {key[1]}, row {cell[0]}, column {cell[1]}"
                    faults[file].append(f"line {number.line}: the number of {what} {where}: remove one")
                own[cell] = number
    of_papers = {paper, *(name for name, _ in merged)}
    shipped = {key: table for key, table in published_tables().items() if key[0] in of_papers}
    tables = {
        key: _table(key, {**(shipped[key].cells if key in shipped else {}), **merged.get(key, {})})
        for key in {**shipped, **merged}
    }
    return PublishedNumbers(paper=paper, tables=tuple(tables.values()), texts=texts), faults


_NEEDED = ("table", "row", "column", "value")
_OPTIONAL = ("paper", "spread", "spread_is", "n", "unit", "source", "note")
_SCALES = {"": 1.0, "k": 1e3, "M": 1e6, "B": 1e9}
_NUMBER = re.compile(r"([+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,3})?) ?([kMB%]?)")
# a word has two letters: `O.99` is a misprint
_WORDS = re.compile(r"[<>≤≥≈~] ?.+|[^\W\d_]{2}.*|[–—-]", re.DOTALL)
_MAX_LETTERS = 500
_MAX_FAULTS = 20

_Numbers = dict[tuple[str, str], dict[tuple[str, str], PublishedNumber]]
"""The numbers of a file by paper and table, then by row and column."""


def read_numbers(text: str, paper: str = "") -> tuple[_Numbers, list[str]]:
    """Read a CSV file of published numbers; return them, and all faults with their lines.

    The numbers are of the paper in the column `paper` or, without one, of `paper`.
    """
    found: _Numbers = {}
    faults: list[str] = []
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    header, line, lines = list[str](), 1, dict[tuple[str, ...], int]()
    try:
        for fields in reader:
            if not any(each.strip() for each in fields):
                pass
            elif not header:
                header = [name.strip() for name in fields]
                if wrong := [*_header_faults(header)]:
                    return {}, [f"line {line}: {each}" for each in wrong]
            elif len(fields) != len(header):
                faults.append(f"line {line}: expected {len(header)} columns, got {len(fields)}")
            else:
                own = {name: each.strip() for name, each in zip(header, fields, strict=True)}
                wrong = [*_field_faults(own)]
                faults += [f"line {line}: {each}" for each in wrong]
                key, cell = (own.get("paper", paper), own["table"]), (own["row"], own["column"])
                first = lines.setdefault((*key, *cell), line)
                if first != line:
                    what = f"{key[0]} {key[1]}, row {cell[0]}, column {cell[1]}".strip()
                    faults.append(f"line {line}: {printable(what)} is in line {first} as well: remove one")
                elif not wrong:
                    found.setdefault(key, {})[cell] = _read_number(own, line)
            line = reader.line_num + 1
    except csv.Error as error:
        faults.append(f"line {line}: expected CSV: {error}")
    if not header:
        faults.append(f"expected a line with the columns {', '.join(_NEEDED)}, and lines of numbers")
    elif not found and not faults:
        faults.append("expected lines of numbers below the line of columns, got none")
    if len(faults) > _MAX_FAULTS:
        faults = [*faults[:_MAX_FAULTS], f"… and {len(faults) - _MAX_FAULTS:,} more faults"]
    return found, faults


def _header_faults(header: Sequence[str]) -> Iterator[str]:
    known = (*_NEEDED, *_OPTIONAL)
    if len(header) == 1 and (sign := next((each for each in ";\t" if each in header[0]), None)):
        yield f"expected columns separated by commas, got {'tabs' if sign == chr(9) else 'semicolons'}"
        return
    if not set(known).intersection(header):
        got = printable(",".join(header)[:40])
        yield f"expected a first line with the columns {', '.join(_NEEDED)}, got '{got}'"
        return
    for number, name in enumerate(header):
        if name in header[:number]:
            yield f"the column '{printable(name)}' is there twice"
        elif name not in known:
            left = [each for each in known if each not in header]
            near = f"; nearest: {found}" if (found := nearest(name, left)) else ""
            yield f"unknown column '{printable(name[:40])}'{near}; known: {', '.join(known)}"
    if missing := [name for name in _NEEDED if name not in header]:
        yield f"missing column{'s' * (len(missing) > 1)} {listed(missing)}"


def _field_faults(own: Mapping[str, str]) -> Iterator[str]:
    for name, text in own.items():
        if not text and name in (*_NEEDED, "paper"):
            what = "a number, or words such as OOM" if name == "value" else "a name"
            yield f"{name}: expected {what}, got nothing"
        elif len(text) > _MAX_LETTERS:
            yield f"{name}: expected at most {_MAX_LETTERS} characters, got {len(text):,}"
        elif replace_unprintable(text) != text or len(text.splitlines()) > 1:
            yield f"{name}: expected printable characters on one line, got '{printable(text[:40])}'"
    value, spread = _plain(own["value"]), _plain(own.get("spread", ""))
    number = _NUMBER.fullmatch(value)
    if value and number is None and _WORDS.fullmatch(value) is None:
        shown, sign = (
            printable(own["value"][:40]),
            next((each for each in ("±", "+-", "(") if each in value), ""),
        )
        advice = f": write what follows {sign} into the column spread" if sign else ""
        yield f"value: expected a number such as 0.990, or words such as OOM, got '{shown}'{advice}"
    elif number is not None and not math.isfinite(float(number[1])):
        yield f"value: expected a number of less than 309 digits, got '{printable(own['value'][:40])}'"
    if spread and ((found := _NUMBER.fullmatch(spread)) is None or float(found[1]) < 0):
        yield f"spread: expected a number such as 0.004, got '{printable(own['spread'][:40])}'"
    elif spread and number is None:
        yield "spread: expected none, because the value is no number"
    kind = own.get("spread_is", "")
    if kind and (kind not in SPREAD_WORDS or not spread):
        got = (
            f"got '{printable(kind[:40])}'{nearest_hint(kind, ('sd', 'se', 'ci'))}"
            if spread
            else "but spread is empty"
        )
        yield f"spread_is: expected sd, se or ci for the number in spread, {got}"
    unit = own.get("unit", "")
    if number is not None and number[2] == "%" and _UNIT_NAMES.get(unit, unit) not in ("", "percent"):
        yield f"unit: expected percent, or none, for {own['value']}, got '{printable(unit[:40])}'"
    count = own.get("n", "")
    if count and not re.fullmatch(r"0*[1-9][0-9]{0,8}", count):
        yield f"n: expected a number of trainings, got '{printable(count[:40])}'"


def _plain(text: str) -> str:
    """Return a printed number with an ASCII sign."""
    return text.replace("−", "-")


def _read_number(own: Mapping[str, str], line: int) -> PublishedNumber:
    number = _NUMBER.fullmatch(_plain(own["value"]))
    unit = own.get("unit", "")
    is_percent = number is not None and number[2] == "%"
    unit = unit or ("percent" if is_percent else "")
    kind = own.get("spread_is", "")
    return PublishedNumber(
        value=float(number[1]) * _SCALES.get(number[2], 1.0) if number else None,
        text=own["value"],
        unit=_UNIT_NAMES.get(unit, unit),
        note=own.get("note", ""),
        spread=own.get("spread", ""),
        spread_is=kind if kind in ("sd", "se", "ci") else "",
        n=int(own["n"]) if own.get("n") else None,
        source=own.get("source", ""),
        line=line,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedMatch:
    """The match of a study's table or figure with a paper's table: its keys by the study's names.

    `rows` and `columns` have the paper's keys by our names. A column is a metric and a level, each "" if it
    does not matter.
    """

    paper: PublishedTable
    rows: Mapping[str, str]
    columns: Mapping[tuple[str, str], str]

    def number_at(self, row: str, metric: str, level: str) -> PublishedNumber | None:
        """Return the paper's number at our row and column, if there is one."""
        keys = self.rows.get(row), self.columns.get((metric, level))
        return self.paper.cells.get((keys[0], keys[1])) if keys[0] and keys[1] else None

    @property
    def numbers(self) -> list[PublishedNumber]:
        """The paper's numbers at our rows and columns."""
        places = ((row, column) for row in self.rows.values() for column in self.columns.values())
        return [self.paper.cells[place] for place in dict.fromkeys(places) if place in self.paper.cells]


def match_published(
    paper: PublishedTable,
    rows: Mapping[str, str],
    metrics: Sequence[str],
    levels: Mapping[str, str],
    *,
    row_names: Mapping[str, str] | None = None,
    column_names: Mapping[str, str] | None = None,
) -> PublishedMatch:
    """Match the rows and columns of a study's table or figure with those of a paper's table.

    This is the one rule which published number belongs to a cell. `rows` and `levels` map the text of each
    level of the rows and of the columns to its label; without `levels` each metric is a column. The names
    given in the study file, `row_names` and `column_names`, decide: a column may be given by `METRIC:LEVEL`,
    by its level, or by its metric for all levels. Others match as `match_published_keys` says, by
    `METRIC:LEVEL` or, for the first metric, by the level. The only column of a paper's table is that of our
    only column.
    """
    given_rows = {text: key for text, key in (row_names or {}).items() if text in rows}
    own_rows = {
        **match_published_keys(
            {text: label for text, label in rows.items() if text not in given_rows}, paper.rows
        ),
        **given_rows,
    }
    given, columns = column_names or {}, dict[tuple[str, str], str]()
    places = (
        [(metric, level) for metric in metrics for level in levels]
        if levels
        else [(each, "") for each in metrics]
    )
    matched = match_published_keys(levels or {metric: metric for metric in metrics}, paper.columns)
    for metric, level in places:
        own_name = f"{metric}:{level}" if level else metric
        key = given.get(own_name) or given.get(level)
        if key is None and level and metric in given:
            key = f"{given[metric]}:{level}"
        by_level = matched.get(level or metric) if not level or metric == metrics[0] else None
        key = key or (own_name if own_name in paper.columns else by_level)
        if key in paper.columns:
            columns[metric, level] = key
    if not columns and not given and len(places) == len(paper.columns) == 1:
        columns[places[0]] = paper.columns[0]
    return PublishedMatch(paper=paper, rows=own_rows, columns=columns)


def match_published_keys(levels: Mapping[str, str] | Iterable[str], keys: Iterable[str]) -> dict[str, str]:
    """Match a factor's levels to row or column keys of a published table.

    Return a mapping from each matched level to its key. Levels that match no key are left out. `levels` are
    texts, or map texts to labels. A level matches the key that equals its text, else the key that equals its
    label, else the key that names its blocks: `conv(k=20) + sa` is `sa+conv`. A key that is taken is not
    matched again, and two levels of the same blocks, such as `conv(k=3)` and `conv(k=20)`, match nothing.
    """
    labels = dict(levels) if isinstance(levels, Mapping) else {level: level for level in levels}
    known = dict.fromkeys(keys)
    by_blocks = {tuple(sorted(part.strip() for part in key.split("+"))): key for key in known}
    ways = (
        {level: level for level in labels},
        labels,
        {level: by_blocks.get(_blocks(level), "") for level in labels},
    )
    found: dict[str, str] = {}
    for way in ways:
        taken, times = set(found.values()), Counter(way.values())
        found |= {
            level: key
            for level, key in way.items()
            if level not in found and key in known and key not in taken and times[key] == 1
        }
    return {level: found[level] for level in labels if level in found}


_ARGUMENTS = re.compile(r"(?<=\w)\([^()]*\)")


def _blocks(level: str) -> tuple[str, ...]:
    """Return the sorted block names in a level such as `conv(k=20) + sa`; () for any other level."""
    bare = level
    while (shorter := _ARGUMENTS.sub("", bare)) != bare:
        bare = shorter
    names = tuple(sorted(part.strip() for part in bare.split("+")))
    return names if all(map(str.isidentifier, names)) else ()
