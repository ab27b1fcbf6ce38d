"""A table for a terminal, in plain columns.

The best values are bold. Published numbers are below measured ones. Plain text marks the best with asterisks.
To keep `*` unambiguous, significance is marked by daggers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from textwrap import wrap

from ....studies.schema.factors import omitted_arguments, short_level_names
from ..table import Cell, Table, heading_runs

INDENT = GAP = 2

_STARS_EXPLAINED = re.compile(r"\*+: p < ")
"""The pattern of a sentence that explains stars."""


def _daggers(text: str) -> str:
    return text.replace("*", "†")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextColumn:
    """The texts of a table column, padded to one width: `ours` are measured, the others `published`.

    A cell may have several published numbers, each on a line.
    """

    width: int
    head: str
    ours: tuple[str, ...]
    published: tuple[tuple[str, ...], ...]
    headings: tuple[str, ...]  # headings above the column, the outermost first


def render(table: Table, *, width: int = 80, ansi: bool = False, notes: bool = True) -> str:
    """Return the table as lines of at most `width` characters, or more if a name is longer.

    Its remarks are below it, and its `notes` if requested.

    A wider table is split by columns. If this avoids splits or longer lines, row names leave out arguments
    that all uses of a block share. `ansi` adds bold for the best and faint for the published numbers; without
    it the best is between asterisks.
    """
    lines = wrap(table.caption, width)
    lines += _body(table, width, ansi=ansi) if table.rows else [""]
    for note in table.footnotes:
        head = f"  {note.mark:<4}"
        lines += wrap(note.text, width, initial_indent=head, subsequent_indent=" " * len(head))
    remarks, hows = (
        " ".join(_daggers(text) if _STARS_EXPLAINED.match(text) else text for text in each)
        for each in (table.remarks, table.notes)
    )
    below = [remarks, table.provenance, hows if notes else "Notes on the numbers: --notes" * bool(hows)]
    for text in below:
        lines += wrap(text, width, initial_indent="  ", subsequent_indent="  ")
    return "\n".join([*lines, ""])


def _body(table: Table, width: int, *, ansi: bool) -> list[str]:
    columns = [
        _column(head, cells, tuple(line[number] for line in table.column_headings), ansi=ansi)
        for number, (head, cells) in enumerate(
            zip(table.columns, zip(*table.cells, strict=True), strict=True)
        )
    ]
    layouts: list[tuple[list[str], int, list[list[TextColumn]]]] = []
    for rows in (table.rows, short_level_names(table.rows)):
        groups = table.groups or ("",) * len(rows)
        names = [" " * INDENT * bool(group) + row for group, row in zip(groups, rows, strict=True)]
        name_width = max(map(len, (table.corner, *groups, *names)))
        layouts.append((names, name_width, _blocks(columns, width - INDENT - name_width)))

    def rank(layout: tuple[list[str], int, list[list[TextColumn]]]) -> tuple[bool, int]:
        _, name_width, blocks = layout
        # a block has at least one column, and so may still be too wide
        widest = max(sum(GAP + each for each in _widths(block)) for block in blocks)
        return INDENT + name_width + widest > width, len(blocks)

    names, name_width, blocks = shown = min(layouts, key=rank)
    lines = [line for block in blocks for line in ("", *_lines(table, names, name_width, block))]
    lines.append("")
    if shown is not layouts[0]:
        in_full = f"In full: {', '.join(omitted_arguments(table.rows))}."
        lines += wrap(in_full, width, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
    return lines


def _column(head: str, cells: Sequence[Cell], headings: tuple[str, ...], *, ansi: bool) -> TextColumn:
    texts = _texts(cells)
    published = [
        [(line.text, f" {','.join(line.marks)}" if line.marks else "") for line in cell.lines_below]
        for cell in cells
    ]
    star = " " if ansi else "*"
    marks = [
        (star if cell.best else "") + (" " + ",".join(cell.marks) if cell.marks else "") for cell in cells
    ]
    every = [line for lines in published for line in lines]
    left, right = int(any(cell.best for cell in cells)), max(map(len, (*marks, *(mark for _, mark in every))))
    body = max(map(len, (head, *texts, *(text for text, _ in every))))
    ours = []
    for cell, text, mark in zip(cells, texts, marks, strict=True):
        bare = text.rstrip()
        shown = star + _ansi(bare, 1, ansi=ansi) if cell.best else bare
        space = " " * (left + body - len(text) - cell.best)
        ours.append(space + shown + f"{mark:<{right + len(text) - len(bare)}}")
    faint = [
        tuple(
            " " * (left + body - len(text)) + _ansi(text, 2, ansi=ansi) + f"{mark:<{right}}"
            for text, mark in lines
        )
        for lines in published
    ]
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


def _blocks(columns: Sequence[TextColumn], max_width: int) -> list[list[TextColumn]]:
    """Split columns into as few blocks as fit into `max_width`, of similar widths.

    A block has at least one column. If possible, it ends where an outer heading ends.
    """
    parted = ([run for _, run in _runs(columns, depth)] for depth in range(len(columns[0].headings)))
    found: list[list[TextColumn]] = []
    for block in _fill(next((runs for runs in parted if len(runs) > 1), [list(columns)]), max_width):
        alone = [[column] for column in block]
        fewest = _fill(alone, max_width)
        # the narrowest limit with which no more blocks are needed
        narrower = (_fill(alone, limit) for limit in range(1, max_width))
        found += next((blocks for blocks in narrower if len(blocks) == len(fewest)), fewest)
    return found


def _fill(parts: Sequence[list[TextColumn]], max_width: int) -> list[list[TextColumn]]:
    blocks: list[list[TextColumn]] = []
    for part in parts:
        longer = [*blocks[-1], *part] if blocks else part
        if blocks and sum(GAP + width for width in _widths(longer)) <= max_width:
            blocks[-1] = longer
        else:
            blocks.append(part)
    return blocks


def _widths(block: Sequence[TextColumn]) -> list[int]:
    """Return the widths of a block's columns. The last one below a wide heading is wider than its texts."""
    widths = [column.width for column in block]
    for depth in range(len(block[0].headings)):
        end = 0
        for heading, run in _runs(block, depth):
            begin, end = end, end + len(run)
            widths[end - 1] += max(0, len(heading) - sum(widths[begin:end]) - GAP * (len(run) - 1))
    return widths


def _lines(table: Table, names: Sequence[str], name_width: int, block: Sequence[TextColumn]) -> Iterator[str]:
    widths = _widths(block)
    spaces = [" " * (GAP + width - column.width) for width, column in zip(widths, block, strict=True)]

    def line(name: str, texts: Iterable[str] = ()) -> str:
        cells = (space + text for space, text in zip(spaces, texts, strict=False))
        return f"{'':{INDENT}}{name:<{name_width}}{''.join(cells)}".rstrip()

    for depth in range(len(block[0].headings)):
        headings, rules, end = "", "", 0
        for heading, run in _runs(block, depth):
            begin, end = end, end + len(run)
            width = sum(widths[begin:end]) + GAP * (len(run) - 1)
            headings += f"{'':{GAP}}{heading:^{width}}"
            rules += f"{'':{GAP}}{('─' if heading else ' ') * width}"
        if headings.strip():
            yield from (line(" " * name_width + text) for text in (headings, rules))
    yield line(table.corner, [column.head for column in block])
    for heading, numbers in table.row_groups():
        if heading:
            yield line(heading)
        for row in numbers:
            ours, below = [column.ours[row] for column in block], [column.published[row] for column in block]
            blank = [" " * column.width for column in block]
            published = [
                [
                    lines[number] if number < len(lines) else empty
                    for lines, empty in zip(below, blank, strict=True)
                ]
                for number in range(max(map(len, below)))
            ]
            shown = [texts for texts in (ours, *published) if any(text.strip() for text in texts)]
            first, *others = shown or [ours]
            yield line(names[row], first)
            yield from (line("", texts) for texts in others)


def _runs(block: Sequence[TextColumn], depth: int) -> Iterator[tuple[str, list[TextColumn]]]:
    columns = iter(block)
    for heading, count in heading_runs([column.headings for column in block], depth):
        yield heading, list(islice(columns, count))
