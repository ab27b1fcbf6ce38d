"""A table for a terminal, in plain columns.

The best values are bold. Published numbers are below measured ones. Plain text marks the best with asterisks.
To keep `*` unambiguous, significance is marked by daggers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from textwrap import wrap

from ....studies.schema.factors import omitted_arguments, short_level_names
from ..table import Cell, Table, heading_runs

INDENT = GAP = 2

_STARS_EXPLAINED = re.compile(r"\*+: p < ")
"""The pattern of the caption sentence that explains stars."""


def _daggers(text: str) -> str:
    return text.replace("*", "†")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextColumn:
    """The texts of a table column, all padded to the same width.

    `ours` has the measured number of each row, `published` the paper's number.
    """

    width: int
    head: str
    ours: tuple[str, ...]
    published: tuple[str, ...]
    headings: tuple[str, ...]  # headings above the column, the outermost first


def render(table: Table, *, width: int = 80, ansi: bool = False) -> str:
    """Return the table as lines of at most `width` characters, or more if a name is longer.

    A wider table is split by columns. If this avoids splits, row names leave out arguments that all uses of a
    block share. `ansi` adds bold for the best and faint for the published numbers; without it the best is
    between asterisks.
    """
    caption = [_daggers(text) if _STARS_EXPLAINED.match(text) else text for text in table.caption]
    lines = [line for sentence in caption for line in wrap(sentence, width)]
    lines += _body(table, width, ansi=ansi) if table.rows else [""]
    for note in table.footnotes:
        head = f"  {note.mark:<4}"
        lines += wrap(note.text, width, initial_indent=head, subsequent_indent=" " * len(head))
    lines += wrap(table.provenance, width, initial_indent="  ", subsequent_indent="  ")
    return "\n".join([*lines, ""])


def _body(table: Table, width: int, *, ansi: bool) -> list[str]:
    lines, cells = list[str](), list(zip(*table.cells, strict=True))  # by column
    columns = [
        _column(head, column, tuple(line[number] for line in table.column_headings), ansi=ansi)
        for number, (head, column) in enumerate(zip(table.columns, cells, strict=True))
    ]
    names, groups = _layout(table, table.rows, columns, width)
    short = _layout(table, short_level_names(table.rows), columns, width)
    shortened = len(short[1]) < len(groups)
    if shortened:
        names, groups = short
    name_width = _name_width(table, names)
    for group in groups:
        lines += ["", *_lines(table, names, _fit_headings(group), name_width)]
    lines.append("")
    if shortened:
        in_full = f"In full: {', '.join(omitted_arguments(table.rows))}."
        lines += wrap(in_full, width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
    return lines


def _layout(
    table: Table, rows: Sequence[str], columns: Sequence[TextColumn], width: int
) -> tuple[tuple[str, ...], list[list[TextColumn]]]:
    headings = table.groups or ("",) * len(rows)
    names = tuple(" " * INDENT * bool(heading) + row for heading, row in zip(headings, rows, strict=True))
    return names, list(_groups(columns, width - INDENT - _name_width(table, names)))


def _name_width(table: Table, names: Sequence[str]) -> int:
    return max(map(len, (table.corner, *table.groups, *names)))


def _column(head: str, cells: Sequence[Cell], headings: tuple[str, ...], *, ansi: bool) -> TextColumn:
    texts = _texts(cells)
    published = [cell.published_text for cell in cells]
    star = " " if ansi else "*"
    marks = [
        (star if cell.best else "") + (" " + ",".join(cell.marks) if cell.marks else "") for cell in cells
    ]
    left, right = int(any(cell.best for cell in cells)), max(map(len, marks), default=0)
    body = max(map(len, (head, *texts, *published)))
    ours = []
    for cell, text, mark in zip(cells, texts, marks, strict=True):
        bare = text.rstrip()
        shown = star + _ansi(bare, 1, ansi=ansi) if cell.best else bare
        space = " " * (left + body - len(text) - cell.best)
        ours.append(space + shown + f"{mark:<{right + len(text) - len(bare)}}")
    faint = [" " * (left + body - len(text)) + _ansi(text, 2, ansi=ansi) + " " * right for text in published]
    return TextColumn(
        width=left + body + right,
        head=" " * left + f"{head:>{body}}" + " " * right,
        ours=tuple(ours),
        published=tuple(faint),
        headings=headings,
    )


def _texts(cells: Sequence[Cell]) -> list[str]:
    spread, interval, difference = (
        max(map(len, parts), default=0)
        for parts in zip(*((cell.spread, cell.interval, cell.difference_text) for cell in cells), strict=True)
    )
    texts = []
    for cell in cells:
        text = cell.text
        if cell.estimate is not None:
            if spread:
                text += f" ± {cell.spread:>{spread}}" if cell.spread else " " * (spread + 3)
            if interval:
                text += f" {cell.interval:>{interval}}"
            if difference:
                shown = f"({_daggers(cell.difference_text)})" if cell.difference_text else ""
                text += f" {shown:>{difference + 2}}"
        texts.append(text)
    return texts


def _ansi(text: str, code: int, *, ansi: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if ansi and text else text


def _groups(columns: Sequence[TextColumn], max_width: int) -> Iterator[list[TextColumn]]:
    """Split columns into groups that fit into `max_width`.

    A group has at least one column. A group ends where an outer heading ends, if possible.
    """
    parted = ([run for _, run in _runs(columns, depth)] for depth in range(len(columns[0].headings)))
    runs = next((runs for runs in parted if len(runs) > 1), [list(columns)])
    group: list[TextColumn] = []
    for run in runs:
        if group and _total_width([*group, *run]) > max_width:
            yield from _balance_groups(group, max_width)
            group = []
        group += run
    yield from _balance_groups(group, max_width)


def _balance_groups(columns: Sequence[TextColumn], max_width: int) -> list[list[TextColumn]]:
    fewest = _fill_groups(columns, max_width)
    # the narrowest limit with which no more groups are needed
    candidates = (_fill_groups(columns, limit) for limit in range(1, max_width))
    return next((groups for groups in candidates if len(groups) == len(fewest)), fewest)


def _fill_groups(columns: Sequence[TextColumn], max_width: int) -> list[list[TextColumn]]:
    groups: list[list[TextColumn]] = []
    for column in columns:
        if groups and _total_width([*groups[-1], column]) <= max_width:
            groups[-1].append(column)
        else:
            groups.append([column])
    return groups


def _total_width(columns: Sequence[TextColumn]) -> int:
    return sum(GAP + column.width for column in _fit_headings(columns))


def _fit_headings(group: Sequence[TextColumn]) -> list[TextColumn]:
    columns = list(group)
    for depth in range(len(columns[0].headings)):
        end = 0
        for heading, run in list(_runs(columns, depth)):
            end += len(run)
            missing = len(heading) - sum(column.width for column in run) - GAP * (len(run) - 1)
            if missing > 0:
                columns[end - 1] = _shift_column(columns[end - 1], missing)
    return columns


def _shift_column(column: TextColumn, by: int) -> TextColumn:
    space = " " * by
    return replace(
        column,
        width=column.width + by,
        head=space + column.head,
        ours=tuple(space + text for text in column.ours),
        published=tuple(space + text for text in column.published),
    )


def _lines(table: Table, names: Sequence[str], group: Sequence[TextColumn], name_width: int) -> Iterator[str]:
    yield from _heading_lines(group, name_width)
    yield _line(table.corner, name_width, [column.head for column in group])
    for heading, numbers in table.row_groups():
        if heading:
            yield _line(heading, name_width, [])
        for row in numbers:
            ours = [column.ours[row] for column in group]
            published = [column.published[row] for column in group]
            if not any(text.strip() for text in ours) and any(text.strip() for text in published):
                yield _line(names[row], name_width, published)
                continue
            yield _line(names[row], name_width, ours)
            if any(text.strip() for text in published):
                yield _line("", name_width, published)


def _heading_lines(group: Sequence[TextColumn], name_width: int) -> Iterator[str]:
    for depth in range(len(group[0].headings)):
        texts, rules = [], []
        for heading, columns in _runs(group, depth):
            width = sum(column.width for column in columns) + GAP * (len(columns) - 1)
            texts.append(f"{heading:^{width}}")
            rules.append(("─" if heading else " ") * width)
        if "".join(texts).strip():
            yield _line("", name_width, texts)
            yield _line("", name_width, rules)


def _runs(group: Sequence[TextColumn], depth: int) -> Iterator[tuple[str, list[TextColumn]]]:
    columns = iter(group)
    for heading, count in heading_runs([column.headings for column in group], depth):
        yield heading, list(islice(columns, count))


def _line(name: str, name_width: int, texts: Sequence[str]) -> str:
    return (" " * INDENT + f"{name:<{name_width}}" + "".join(" " * GAP + text for text in texts)).rstrip()
