"""A table as Markdown with pipes. As on GitHub, `<sub>` is small type, and `<sup>` marks footnotes."""

from __future__ import annotations

import re

from ..table import Cell, Table

_SPECIAL = re.compile(
    r"[\\`*\[\]|~#$]"
    r"|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])"
    r"|^(?:\d{1,9}[.)]|[-+=]+)(?=\s|$)"  # the start of a list, a line below a heading
)
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def render(table: Table) -> str:
    """Return the caption, the table, its footnotes, its remarks, its notes and its provenance.

    The paper's numbers are smaller and below ours. Markdown has one heading row: headings above a column
    share its cell, and a factor above its levels shares the cell of the first. Groups are rows. Texts, such
    as recipes, are left-aligned.
    """
    heads = [_head(table, column) for column in range(len(table.columns))]
    # texts without a number, such as recipes, are at the left
    texts = [
        [bool(cell.picked) and cell.estimate is None for cell in cells]
        for cells in zip(*table.cells, strict=True)
    ]
    sides = [":--", *(":--" if any(column) else "--:" for column in texts)]
    lines = [escape(table.caption), "", _line([escape(table.corner), *heads]), _line(sides)]
    for heading, numbers in table.row_groups():
        if heading:
            lines.append(_line([f"*{escape(heading)}*", *[""] * len(table.columns)]))
        lines += [_line([escape(table.rows[row]), *map(_cell, table.cells[row])]) for row in numbers]
    below = [f"<sup>{note.mark}</sup> {escape(note.text)}" for note in table.footnotes]
    below += filter(None, [escape(" ".join((*table.remarks, *table.notes)))])
    below.append(escape(table.provenance))
    return "\n".join([*lines, "", "<sub>" + "<br>\n".join(below) + "</sub>", ""])


def _head(table: Table, column: int) -> str:
    """Join a column's headings and name, without a factor's name that the column to the left already has."""
    paths = [*table.column_headings, table.columns]
    names = [escape(line[column]) for line in paths]
    at = table.factor_line
    goes_on = at is not None and column and all(line[column - 1] == line[column] for line in paths[: at + 1])
    return "<br>".join("" if goes_on and n == at else name for n, name in enumerate(names) if name)


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(cell: Cell) -> str:
    text = escape(cell.full_text)
    ours = f"**{text}**" if cell.best else text
    if cell.marks:
        ours += f"<sup>{','.join(cell.marks)}</sup>"
    published = (
        f"<sub>{escape(line.text)}</sub>" + (f"<sup>{','.join(line.marks)}</sup>" if line.marks else "")
        for line in cell.lines_below
    )
    return "<br>".join(part for part in (ours, *published) if part)


def escape(text: str) -> str:
    """Return a text on one line so that Markdown shows it as it is, without list, link, cell or markup."""
    if text.isalnum():
        return text
    escaped = _SPECIAL.sub(lambda match: f"{match[0][:-1]}\\{match[0][-1]}", " ".join(text.split("\n")))
    return "".join(_ENTITIES.get(char, char) for char in escaped)
