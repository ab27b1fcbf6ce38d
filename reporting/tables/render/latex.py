"""A table as LaTeX: a booktabs float for articles of one or two columns.

The float is a `table` if its rows are short enough for one of two columns, else a `table*`. The package
adjustbox shrinks a table that is wider than the line or higher than the page.
"""

from __future__ import annotations

import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import accumulate

from ....errors import replace_unprintable
from ..table import Cell, Table

MAX_COLUMN_TEXT = 55
"""The maximum number of characters in a row of a table that fits one of two columns in small type."""


def render(table: Table) -> str:
    """Return the LaTeX code of a table as a float.

    Published numbers are smaller, and on a second line of each row.
    """
    return render_float(table, PlainForm())


def render_float(table: Table, form: CellForm) -> str:
    """Return a table as a LaTeX float. `form` writes the LaTeX code of its cells."""
    widths = [max(len(each.full_text) for each in column) + 2 for column in zip(*table.cells, strict=True)]
    names = max(map(len, (table.corner, *table.rows)))
    environment = "table*" if names + sum(widths) > MAX_COLUMN_TEXT else "table"
    below = [rf"\textsuperscript{{{escape(note.mark)}}}~{escape(note.text)}" for note in table.footnotes]
    below.append(escape(table.provenance))
    lines = [
        f"% {form.packages}",
        rf"\begin{{{environment}}}",
        r"  \centering",
        rf"  \caption{{{escape(' '.join(table.caption))}}}",
        rf"  \label{{tab:{table.name}}}",
        r"  \medskip",
        *(f"  {line}" for line in form.setup),
        r"  \footnotesize",
        r"  \begin{adjustbox}{max width=\linewidth, max totalheight=0.8\textheight}",
        *_tabular_lines(table, form),
        r"  \end{adjustbox}",
        "",
        r"  \smallskip",
        r"  \begin{minipage}{\linewidth}",
        "    \\footnotesize\\raggedright\n    " + " \\\\\n    ".join(below),
        r"  \end{minipage}",
        rf"\end{{{environment}}}",
    ]
    return "\n".join([*lines, ""])


def _tabular_lines(table: Table, form: CellForm) -> list[str]:
    numbers = range(len(table.columns))
    specification = "".join(form.columns(table, number) for number in numbers)
    spans = [spans_of(table, number) for number in numbers]
    names = (form.head(escape(name), span) for name, span in zip(table.columns, spans, strict=True))
    heads = " & ".join([escape(table.corner), *names])
    lines = [
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
    return [*lines, r"    \bottomrule", r"  \end{tabular}"]


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


class CellForm(ABC):
    """Writer of table cells as LaTeX code.

    A column of the table takes one or two LaTeX columns; `span` is their number.
    """

    packages = r"\usepackage[T1]{fontenc} \usepackage{textcomp,booktabs,adjustbox}"
    setup: tuple[str, ...] = ()
    """LaTeX commands at the beginning of a float, such as settings of packages."""

    @abstractmethod
    def columns(self, table: Table, number: int) -> str:
        """Return the LaTeX column specification of one table column."""

    @abstractmethod
    def head(self, text: str, span: int) -> str:
        """Return the LaTeX code of a column heading."""

    @abstractmethod
    def ours(self, cell: Cell, span: int) -> str:
        """Return the LaTeX code of the study's number and of all that follows it.

        That is other text and footnote marks.
        """

    def published(self, cell: Cell, span: int) -> str:
        """Return the LaTeX code of the paper's number, in smaller type."""
        small = rf"{{\scriptsize {escape(cell.published_text)}}}" if cell.published_text else ""
        return self.head(small, span)


class PlainForm(CellForm):
    """Writer of table cells as LaTeX code, with right-aligned numbers.

    Text that follows a number, such as an interval, is in a second, left-aligned column.
    """

    def columns(self, table: Table, number: int) -> str:
        """Return a right-aligned column, and a left-aligned one for text that follows a number."""
        return "r" if spans_of(table, number) == 1 else r"r@{\enspace}l"

    def head(self, text: str, span: int) -> str:
        """Return a heading that spans all LaTeX columns of its column."""
        return over(text, span)

    def ours(self, cell: Cell, span: int) -> str:
        """Return the study's number with its spread, and all that follows it. The best is bold."""
        if span == 1 or cell.estimate is None:
            return over(text_of(cell), span)
        number = f"{cell.text} ± {cell.spread}" if cell.spread else cell.text
        rest = rest_of(cell)
        if not rest:
            return f"{_bold(number, cell)}{marks_of(cell)} &"
        return f"{_bold(number, cell)} & {_bold(rest, cell)}{marks_of(cell)}"


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
