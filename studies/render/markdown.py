"""A table as Markdown with pipes; small type is `<sub>`, a footnote's mark is `<sup>`, as on GitHub."""

from __future__ import annotations

import re

from ..table import Cell, Table

_SIGNS = re.compile(r"[\\`*\[\]|~#$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def to_markdown(table: Table) -> str:
    """The caption, the table with the paper's numbers in small type below ours, footnotes and provenance.

    Pipes have one line of headings: those above a column stand over its own. Headings of rows are rows.
    """
    paths = zip(*table.bands, table.columns, strict=True)
    heads = ["<br>".join(_plain(name) for name in path if name) for path in paths]
    sides = [":--", *["--:"] * len(table.columns)]
    lines = [" ".join(map(_plain, table.caption)), "", _line([_plain(table.corner), *heads]), _line(sides)]
    for heading, numbers in table.grouped():
        if heading:
            lines.append(_line([f"*{_plain(heading)}*", *[""] * len(table.columns)]))
        lines += [_line([_plain(table.rows[row]), *map(_cell, table.cells[row])]) for row in numbers]
    below = [f"<sup>{note.mark}</sup> {_plain(note.text)}" for note in table.footnotes]
    below.append(_plain(table.provenance))
    return "\n".join([*lines, "", "<sub>" + "<br>\n".join(below) + "</sub>", ""])


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(cell: Cell) -> str:
    """Ours with its marks, and the paper's in small type on a second line."""
    text = _bounds(cell.text)
    ours = f"**{text}**" if cell.best else text
    if cell.marks:
        ours += f"<sup>{','.join(cell.marks)}</sup>"
    papers = f"<sub>{_plain(cell.printed)}</sub>" if cell.printed else ""
    return "<br>".join(part for part in (ours, papers) if part)


def _bounds(text: str) -> str:
    """The text of a number with its interval's brackets made plain."""
    return text.replace("[", "\\[").replace("]", "\\]")


def _plain(text: str) -> str:
    """The text so that no sign in it is markup; an underscore inside a word is none."""
    escaped = _SIGNS.sub(lambda sign: "\\" + sign.group(), text)
    return "".join(_MARKUP.get(sign, sign) for sign in escaped)
