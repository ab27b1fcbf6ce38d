"""A table as Markdown with pipes; small type is `<sub>`, a footnote's mark is `<sup>`, as on GitHub."""

from __future__ import annotations

import re

from ..table import Cell, Table

_SIGNS = re.compile(r"[\\`*\[\]|~#$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def to_markdown(table: Table) -> str:
    """The caption, the table with the paper's numbers in small type below ours, footnotes and provenance."""
    heads = [_plain(name) for name in (table.corner, *table.columns)]
    sides = [":--", *["--:"] * len(table.columns)]
    lines = [" ".join(map(_plain, table.caption)), "", _line(heads), _line(sides)]
    for row, cells in zip(table.rows, table.cells, strict=True):
        lines.append(_line([_plain(row), *map(_cell, cells)]))
    below = [f"<sup>{note.mark}</sup> {_plain(note.text)}" for note in table.footnotes]
    below.append(_plain(table.provenance))
    return "\n".join([*lines, "", "<sub>" + "<br>\n".join(below) + "</sub>", ""])


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(cell: Cell) -> str:
    ours = f"**{cell.text}**" if cell.best else cell.text
    if cell.marks:
        ours += f"<sup>{','.join(cell.marks)}</sup>"
    papers = f"<br><sub>{_plain(cell.published.text)}</sub>" if cell.published and cell.published.text else ""
    return ours + papers


def _plain(text: str) -> str:
    """The text so that no sign in it is markup; an underscore inside a word is none."""
    escaped = _SIGNS.sub(lambda sign: "\\" + sign.group(), text)
    return "".join(_MARKUP.get(sign, sign) for sign in escaped)
