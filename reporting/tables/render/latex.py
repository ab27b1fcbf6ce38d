"""A table as LaTeX: a booktabs float for articles of one or two columns.

The float is a `table` if it fits one of two columns, with a reduced type size if necessary, else a `table*`.
Columns that do not fit on a page side by side are split into blocks below each other. A table that is still
too wide, for example in another typeface, is shrunk to the line.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from ....errors import replace_unprintable
from ....studies.schema.factors import omitted_arguments, short_level_names
from ..table import Cell, Table

COLUMN_WIDTH = 219.0
"""The width in points of one of two columns in ACL's class, the narrowest tested one."""

PAGE_WIDTH = 455.0
"""The width in points of both columns together; ICML has more, NeurIPS less."""

PAGE_HEIGHT = 540.0
"""The points of a page available for rows, after caption and notes."""

SMALL = 0.8
"""The size of small type relative to normal type."""

SMALLEST = 0.72
"""The smallest type size; a table that needs a smaller one is split into blocks of columns."""

_LINE = 12.0
"""The line height in points."""

_GAP = 12.0
"""The points between columns."""


def render(table: Table) -> str:
    """Return the LaTeX code of a table, in one or more `table` environments.

    Published numbers are smaller, and on a second line of each row.
    """
    return render_float(table, CellForm())


def render_float(table: Table, form: CellForm) -> str:
    """Return the LaTeX floats of a table. `form` writes the LaTeX code of its cells."""
    shown, fit = table, _fit(table)
    short = replace(table, rows=short_level_names(table.rows))
    if (short_fit := _fit(short)) < fit:
        shown, fit = short, short_fit
    environment = "table*" if fit.is_over_columns else "table"
    floats = list(_floats(shown, is_small=fit.is_small))
    below = [rf"\textsuperscript{{{escape(note.mark)}}}~{escape(note.text)}" for note in table.footnotes]
    if shown is not table:
        below.append(escape(f"In full: {', '.join(omitted_arguments(table.rows))}."))
    below.append(escape(table.provenance))
    lines = [f"% {form.packages}"]
    for number, parts in enumerate(floats):
        lines += [
            rf"\begin{{{environment}}}",
            r"  \centering",
            *_caption_lines(table, is_first=number == 0),
            r"  \medskip",
            *(f"  {line}" for line in form.setup),
            *([r"  \footnotesize"] if fit.is_small else []),
        ]
        for at, part in enumerate(parts):
            lines += ["", r"  \medskip"] if at else []
            lines += _tabular_lines(part, form)
        if number == len(floats) - 1:
            text = "    \\footnotesize\\raggedright\n    " + " \\\\\n    ".join(below)
            lines += ["", r"  \smallskip", r"  \begin{minipage}{\linewidth}", text, r"  \end{minipage}"]
        lines.append(rf"\end{{{environment}}}")
    return "\n".join([*lines, ""])


def _caption_lines(table: Table, *, is_first: bool) -> list[str]:
    """Return the lines of a float's caption and label.

    A further float of the same table has no label; its caption is "Continued." with the number of the first
    float.
    """
    if not is_first:
        return [r"  \addtocounter{table}{-1}", r"  \caption{Continued.}"]
    return [rf"  \caption{{{escape(' '.join(table.caption))}}}", rf"  \label{{tab:{table.name}}}"]


def _floats(table: Table, *, is_small: bool) -> Iterator[list[Table]]:
    line = SMALL * _LINE if is_small else _LINE
    parts: list[Table] = []
    used = 0.0
    for part in (each for block in _blocks(table) for each in _pieces(block, PAGE_HEIGHT / line)):
        height = line * _num_lines(part)
        if parts and used + height > PAGE_HEIGHT:
            yield parts
            parts, used = [], 0.0
        parts, used = [*parts, part], used + height
    yield parts


def _pieces(table: Table, room: float) -> Iterator[Table]:
    begin = 0
    for end in range(1, len(table.rows) + 1):
        if end - begin > 1 and _num_lines(_rows_of(table, begin, end)) > room:
            yield _rows_of(table, begin, end - 1)
            begin = end - 1
    yield _rows_of(table, begin, len(table.rows)) if begin else table


def _rows_of(table: Table, begin: int, end: int) -> Table:
    return replace(
        table, rows=table.rows[begin:end], cells=table.cells[begin:end], groups=table.groups[begin:end]
    )


def _num_lines(table: Table) -> float:
    published = sum(any(cell.published_text and cell.full_text for cell in row) for row in table.cells)
    headings = 1.4 * sum(bool(heading) for heading, _ in table.row_groups())
    return 3 + 1.4 * len(table.column_headings) + len(table.rows) + 1.2 * published + headings


class _Fit(NamedTuple):
    """Measures of how well a table fits a page, in order of importance. Smaller values are better."""

    blocks: int
    is_over_columns: bool
    is_small: bool


def _fit(table: Table) -> _Fit:
    blocks = list(_blocks(table))
    natural = max(map(_width, blocks))
    is_over_columns = SMALL * natural > COLUMN_WIDTH
    return _Fit(len(blocks), is_over_columns, natural > (PAGE_WIDTH if is_over_columns else COLUMN_WIDTH))


def _blocks(table: Table) -> Iterator[Table]:
    """Split the columns of a table into blocks that fit on a page.

    There are as few blocks as possible, set in the smallest type.
    """
    room = PAGE_WIDTH / SMALLEST - _row_names_width(table)
    widths = [_column_width(table, number) for number in range(len(table.columns))]
    if sum(widths) <= room:
        yield table
        return
    begin, used, at = 0, 0.0, 0
    for count in _inseparable(table, widths, room):
        width = sum(widths[at : at + count])
        if at > begin and used + width > room:
            yield _columns_of(table, begin, at)
            begin, used = at, 0.0
        used, at = used + width, at + count
    yield _columns_of(table, begin, at)


def _inseparable(table: Table, widths: Sequence[float], room: float) -> Sequence[int]:
    """Return the sizes of the groups of columns that must stay together.

    A group is the columns below one heading. If such a group is wider than `room`, or if there are no
    headings, each column is a group.
    """
    for headings in table.heading_spans():
        counts = [count for _, count in headings]
        ends = list(accumulate(counts))
        runs = [sum(widths[end - count : end]) for count, end in zip(counts, ends, strict=True)]
        if len(runs) > 1:
            return counts if max(runs) <= room else [1] * len(widths)
    return [1] * len(widths)


def _columns_of(table: Table, begin: int, end: int) -> Table:
    return replace(
        table,
        columns=table.columns[begin:end],
        keys=table.keys[begin:end],
        cells=tuple(row[begin:end] for row in table.cells),
        column_headings=tuple(line[begin:end] for line in table.column_headings if any(line[begin:end])),
    )


def _width(table: Table) -> float:
    return _row_names_width(table) + sum(_column_width(table, n) for n in range(len(table.columns)))


def _row_names_width(table: Table) -> float:
    names = max(map(text_width, (table.corner, *table.rows)))
    return names + (10.0 if table.groups else 0.0)  # width of the indent below a heading


def _column_width(table: Table, number: int) -> float:
    texts = [table.columns[number], *(row[number].full_text for row in table.cells)]
    small = [SMALL * text_width(row[number].published_text) for row in table.cells]
    return _GAP + max([*map(text_width, texts), *small])


def _tabular_lines(table: Table, form: CellForm) -> list[str]:
    numbers = range(len(table.columns))
    specification = "".join(form.columns(table, number) for number in numbers)
    spans = [spans_of(table, number) for number in numbers]
    names = (form.head(escape(name), span) for name, span in zip(table.columns, spans, strict=True))
    heads = " & ".join([escape(table.corner), *names])
    # `\resizebox` shrinks the table only if it is wider than the line
    lines = [
        r"  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"  \begin{{tabular}}{{@{{}}l{specification}@{{}}}}",
        r"    \toprule",
        *_heading_lines(table, spans),
        rf"    {heads} \\",
        r"    \midrule",
    ]
    for number, (heading, rows) in enumerate(table.row_groups()):
        indent = r"\quad " if heading else ""
        if heading:
            over = rf"\multicolumn{{{1 + sum(spans)}}}{{@{{}}l}}{{\textit{{{escape(heading)}}}}}"
            space = r"\addlinespace " if number else ""
            lines.append(rf"    {space}{over} \\")
        for row in rows:
            lines += _row(indent + escape(table.rows[row]), table.cells[row], spans, form)
    return [*lines, r"    \bottomrule", r"  \end{tabular}}"]


def _heading_lines(table: Table, spans: Sequence[int]) -> list[str]:
    ends = [0, *accumulate(spans)]
    lines = []
    for headings in table.heading_spans():
        texts, rules, column = [], [], 0
        for name, count in headings:
            first, last = 2 + ends[column], 1 + ends[column + count]
            over = last - first + 1
            texts.append(rf"\multicolumn{{{over}}}{{c}}{{{escape(name)}}}" if name else "& " * (over - 1))
            rules += [rf"\cmidrule(lr){{{first}-{last}}}"] if name else []
            column += count
        lines.append(rf"    & {' & '.join(texts).strip()} \\ {''.join(rules)}".rstrip())
    return lines


def _row(name: str, cells: Sequence[Cell], spans: Sequence[int], form: CellForm) -> list[str]:
    """Return the LaTeX lines of a table row.

    The study's numbers are in the first line, the paper's in the second. A line without numbers is left out.
    """
    ours = " & ".join(map(form.ours, cells, spans))
    published = rf"{' & '.join(map(form.published, cells, spans))} \\ \addlinespace"
    if not any(cell.published_text for cell in cells):
        return [rf"    {name} & {ours} \\"]
    if not any(cell.full_text or cell.marks for cell in cells):
        return [rf"    {name} & {published}"]
    return [rf"    {name} & {ours} \\", rf"    & {published}"]


def marks_of(cell: Cell) -> str:
    """Return the footnote marks of a cell as LaTeX code.

    The marks take no width, so that the numbers of a column are aligned.
    """
    return rf"\rlap{{\textsuperscript{{{','.join(cell.marks)}}}}}" if cell.marks else ""


def text_of(cell: Cell) -> str:
    """Return all texts of a cell, with its footnote marks."""
    return _bold(cell.full_text, cell) + marks_of(cell)


def rest_of(cell: Cell) -> str:
    """Return the text after a number and its spread.

    It is an interval, a difference in parentheses, both or nothing.
    """
    difference = f"({cell.difference_text})" if cell.difference_text else ""
    return " ".join(part for part in (cell.interval, difference) if part)


def spans_of(table: Table, number: int) -> int:
    """Return how many LaTeX columns a table column needs. It is two if text follows its numbers, else one."""
    return 1 + any(rest_of(row[number]) for row in table.cells)


def over(text: str, span: int) -> str:
    """Return LaTeX code for a text over `span` columns."""
    return text if span == 1 else rf"\multicolumn{{{span}}}{{c}}{{{text}}}"


def _bold(text: str, cell: Cell) -> str:
    return rf"\textbf{{{escape(text)}}}" if cell.best else escape(text)


class CellForm:
    """Writer of table cells as LaTeX code, with right-aligned numbers.

    Text that follows a number, such as an interval, is in a second, left-aligned column. A column of the
    table takes one or two LaTeX columns; `span` is their number.
    """

    packages = r"\usepackage[T1]{fontenc} \usepackage{textcomp,booktabs,graphicx}"
    setup: tuple[str, ...] = ()
    """LaTeX commands at the beginning of a float, such as settings of packages."""

    def columns(self, table: Table, number: int) -> str:
        """Return the LaTeX column specification of one table column."""
        return "r" if spans_of(table, number) == 1 else r"r@{\enspace}l"

    def head(self, text: str, span: int) -> str:
        """Return the LaTeX code of a column heading."""
        return over(text, span)

    def ours(self, cell: Cell, span: int) -> str:
        """Return the LaTeX code of the study's number and of all that follows it.

        That is other text and footnote marks.
        """
        if span == 1 or cell.estimate is None:
            return over(text_of(cell), span)
        number = f"{cell.text} ± {cell.spread}" if cell.spread else cell.text
        rest = rest_of(cell)
        if not rest:
            return f"{_bold(number, cell)}{marks_of(cell)} &"
        return f"{_bold(number, cell)} & {_bold(rest, cell)}{marks_of(cell)}"

    def published(self, cell: Cell, span: int) -> str:
        """Return the LaTeX code of the paper's number, at footnote size."""
        small = rf"{{\footnotesize {escape(cell.published_text)}}}" if cell.published_text else ""
        return self.head(small, span)


_ESCAPES = {
    "\\": r"\textbackslash{}",
    "[": "{[}",  # after a line break `[` would begin an option,
    "*": "{*}",  # and `*` would be one
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    "±": r"$\pm$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "–": r"\textendash{}",
    "…": r"\ldots{}",
    "\N{REPLACEMENT CHARACTER}": "?",
    "\N{FRACTION SLASH}": "/",
    "−": r"$-$",
    "√": r"$\surd$",
    "∘": r"$\circ$",
    "⊗": r"$\otimes$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≠": r"$\neq$",
    "≈": r"$\approx$",
    "→": r"$\rightarrow$",
    "←": r"$\leftarrow$",
    "∞": r"$\infty$",
    "ς": r"$\varsigma$",
    "ϕ": r"$\phi$",
    "′": r"$'$",
    "″": r"$''$",
    "∗": r"$\ast$",
    "—": r"\textemdash{}",
    "‘": "`",
    "’": "'",
    "“": "``",
    "”": "''",
    "€": r"\texteuro{}",
    "µ": r"$\mu$",
}
_GREEK = {
    letter: unicodedata.name(letter).rpartition(" ")[2].replace("LAMDA", "LAMBDA")
    for letter in "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ"
}
_ESCAPES |= {
    letter: rf"$\{name.lower() if letter.islower() else name.title()}$" for letter, name in _GREEK.items()
}

_LETTERS_OF_T1 = "ÆæŒœØøßÐðÞþŁłĐđŊŋ¡¿«»§"
"""Letters of the T1 font encoding that are not composed of a letter and an accent."""


def escape(text: str) -> str:
    """Return the text as LaTeX code, with special characters escaped.

    Characters that the T1 encoding does not have are replaced.
    """
    # TeX would join two hyphens to a dash
    return "".join(map(_escape_character, replace_unprintable(text))).replace("--", "-{}-")


def _escape_character(char: str) -> str:
    r"""Return the LaTeX code of one character.

    A replacement is made of simpler characters, as `\textsuperscript{2}` for ², or else the code point.
    """
    if char in _ESCAPES or char.isascii():
        return _ESCAPES.get(char, " " if char.isspace() else char)
    parts = unicodedata.normalize("NFKD", char)
    accents = sum(map(unicodedata.combining, parts)) > 0
    if char in _LETTERS_OF_T1 or (accents and parts[0].isascii() and char <= "\u017f"):
        return char
    mark = {"<super>": "textsuperscript", "<sub>": "textsubscript"}.get(
        unicodedata.decomposition(char).partition(" ")[0]
    )
    if parts != char and not accents:
        made = "".join(map(_escape_character, parts))
        return rf"\{mark}{{{made}}}" if mark else made
    return f"(U+{ord(char):04X})"


_WIDTHS = {
    **dict.fromkeys(" ijltfrI.,:;'|!()[]/-", 3.3),
    **dict.fromkeys("mwMW%@±×−→←≤≥≠≈–…", 8.0),
    **dict.fromkeys("ABCDEFGHJKLNOPQRSTUVXYZ&=+<>~", 7.0),
}
"""The width of characters in points at a size of ten, in the wider of Times and Computer Modern."""


def text_width(text: str) -> float:
    """Return the approximate width of a text in points at a size of ten."""
    return sum(_WIDTHS.get(char, 5.2) for char in text)
