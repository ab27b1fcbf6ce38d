"""A table for a terminal: plain columns, the best between asterisks, the published numbers below ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

from ..table import Cell, Table

INDENT = GAP = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column laid out: every text as wide as the others, ours and the paper's for each row."""

    width: int
    head: str
    ours: tuple[str, ...]
    papers: tuple[str, ...]


def to_terminal(table: Table, *, width: int = 80, ansi: bool = False) -> str:
    """Lines of at most `width` columns where names allow it; a wider table continues below, in column groups.

    `ansi` adds bold for the best and faint for the published numbers, and changes no visible character.
    """
    lines = [line for sentence in table.caption for line in wrap(sentence, width)]
    label = max(map(len, (table.corner, *table.rows)))
    cells = list(zip(*table.cells, strict=True))  # by column
    columns = [_column(head, each, ansi=ansi) for head, each in zip(table.columns, cells, strict=True)]
    for group in _groups(columns, width - INDENT - label):
        lines += ["", *_lines(table, group, label)]
    lines.append("")
    for note in table.footnotes:
        head = f"  {note.mark:<4}"
        lines += wrap(note.text, width, initial_indent=head, subsequent_indent=" " * len(head))
    lines += wrap(table.provenance, width, initial_indent="  ", subsequent_indent="  ")
    return "\n".join([*lines, ""])


def _column(head: str, cells: Sequence[Cell], *, ansi: bool) -> Column:
    """A column of cells: star, right-aligned text, star and marks, each in its own place."""
    spread = max((len(cell.spread) for cell in cells), default=0)
    texts = [_text(cell, spread) for cell in cells]
    papers = [cell.published.text if cell.published else "" for cell in cells]
    marks = [
        ("*" if cell.best else "") + (" " + ",".join(cell.marks) if cell.marks else "") for cell in cells
    ]
    left, right = int(any(cell.best for cell in cells)), max(map(len, marks), default=0)
    body = max(map(len, (head, *texts, *papers)))
    ours = []
    for cell, text, mark in zip(cells, texts, marks, strict=True):
        shown = "*" + _ansi(text, 1, ansi=ansi) if cell.best else text
        ours.append(" " * (left + body - len(text) - cell.best) + shown + f"{mark:<{right}}")
    faint = [" " * (left + body - len(text)) + _ansi(text, 2, ansi=ansi) + " " * right for text in papers]
    return Column(
        width=left + body + right,
        head=" " * left + f"{head:>{body}}" + " " * right,
        ours=tuple(ours),
        papers=tuple(faint),
    )


def _text(cell: Cell, spread: int) -> str:
    """A cell's text, its deviation as wide as the column's widest, so that means stand below each other."""
    if cell.spread:
        return f"{cell.shown} ± {cell.spread:>{spread}}"
    return cell.shown + " " * (spread + 3) if cell.mean is not None and spread else cell.shown


def _ansi(text: str, code: int, *, ansi: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if ansi and text else text


def _groups(columns: Sequence[Column], room: int) -> Iterator[list[Column]]:
    """As many columns side by side as there is room for, at least one."""
    group: list[Column] = []
    for column in columns:
        if group and sum(GAP + each.width for each in (*group, column)) > room:
            yield group
            group = []
        group.append(column)
    if group:
        yield group


def _lines(table: Table, group: Sequence[Column], label: int) -> Iterator[str]:
    """The lines of one column group: its heads, then each row and, where there is one, the paper's line."""
    yield _line(table.corner, label, [column.head for column in group])
    for index, row in enumerate(table.rows):
        yield _line(row, label, [column.ours[index] for column in group])
        papers = _line("", label, [column.papers[index] for column in group])
        if papers:
            yield papers


def _line(name: str, label: int, texts: Sequence[str]) -> str:
    return (" " * INDENT + f"{name:<{label}}" + "".join(" " * GAP + text for text in texts)).rstrip()
