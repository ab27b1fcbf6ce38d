"""A table as LaTeX: a booktabs float for articles of one or two columns.

The float is a `table` if its rows are short enough for one of two columns, else a `table*`. A table that is
wider than a page has its groups of columns below one another. The package adjustbox shrinks what is still
wider than the line or higher than the page.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from ....errors import replace_unprintable
from ....studies.catalog.metrics import METRICS_AND_COSTS, metric_family
from ....studies.presentation.metric_words import spelled_out
from ..table import Cell, PublishedLine, Table

MAX_COLUMN_TEXT = 55
"""The maximum number of characters in a row of a table that fits one of two columns in small type."""

MAX_PAGE_TEXT = 2 * MAX_COLUMN_TEXT
"""The maximum number of characters in a row of a table whose groups of columns are side by side."""

MAX_CELL_TEXT = 45
"""The maximum number of characters of a cell, such as a recipe, that is not broken into lines."""

_T1 = r"\usepackage[T1]{fontenc}"
_UNICODE = r"\usepackage{fontspec}"
_PACKAGES = r"\usepackage{textcomp,booktabs,adjustbox}"
_SIUNITX = f"{_PACKAGES[:-1]},siunitx}} (siunitx 3)"
_SIUNITX_SETUP = (
    r"  \sisetup{separate-uncertainty=true, retain-zero-uncertainty=true, group-digits=integer,",
    r"    group-separator={,}, group-minimum-digits=4, mode=text, reset-text-series=false,",
    r"    table-align-text-after=false}",
)

_END_OF_BOX = (r"  \end{adjustbox}", "", r"  \smallskip")
_WRAPPED = r"p{0.55\linewidth}"

_NUMBER = re.compile(r"(−?)([\d,]+)(?:\.(\d+))?")
"""A number that siunitx can align: its sign, its digits before the point, and those after it."""


def render(table: Table, *, aligned: bool = False) -> str:
    """Return the LaTeX code of a table as a float.

    Published numbers are smaller, and on a second line of each row. Numbers are right-aligned or, if
    `aligned`, in columns `S` of siunitx, which aligns their decimal points, even in bold.
    """
    parts = list(_parts(_with_spelled_metrics(table)))
    environment = "table*" if max(map(_width, parts)) > MAX_COLUMN_TEXT else "table"
    height = rf"max totalheight={0.8 / len(parts):.2g}\textheight"
    box = rf"  \begin{{adjustbox}}{{max width=\linewidth, {height}}}"
    below = [rf"\textsuperscript{{{escape(note.mark)}}}~{escape(note.text)}" for note in table.footnotes]
    below += filter(None, [escape(" ".join(table.remarks)), escape(" ".join(table.notes))])
    below.append(escape(table.provenance))
    lines = [
        rf"\begin{{{environment}}}",
        r"  \centering",
        rf"  \caption{{{escape(table.caption)}}}",
        rf"  \label{{tab:{table.name}}}",
        r"  \medskip",
        *(_SIUNITX_SETUP if aligned else ()),
        r"  \footnotesize",
        *(line for part in parts for line in (box, *_tabular_lines(part, aligned=aligned), *_END_OF_BOX)),
        r"  \begin{minipage}{\linewidth}",
        "    \\footnotesize\\raggedright\n    " + " \\\\\n    ".join(below),
        r"  \end{minipage}",
        rf"\end{{{environment}}}",
    ]
    code, packages = "\n".join([*lines, ""]), _SIUNITX if aligned else _PACKAGES
    needed = unicode_note(code)
    return f"% {_UNICODE} {packages}\n% {needed}\n{code}" if needed else f"% {_T1} {packages}\n{code}"


def unicode_note(code: str) -> str:
    """Return which other programs than pdfLaTeX print LaTeX code that `escape` has made, or "" if it can."""
    shown = "\n".join(line for line in code.split("\n") if not line.startswith("%"))
    others = sorted({char for char in shown if not char.isascii() and not _is_in_t1(char)})
    more = f"{''.join(others[:_MOST_NAMED])}{'…' if len(others) > _MOST_NAMED else ''}"
    return f"needs XeLaTeX or LuaLaTeX, and a font that has {more}" if others else ""


_MOST_NAMED = 40


def _with_spelled_metrics(table: Table) -> Table:
    """Return the table with words for the names of metrics in its headings: Test loss for test_loss."""

    def spelled(heads: Sequence[str]) -> tuple[str, ...]:
        return tuple(
            head.replace(key.metric, spelled_out(key.metric), 1)
            if head.partition(" ")[0] == key.metric and metric_family(key.metric) in METRICS_AND_COSTS
            else head
            for head, key in zip(heads, table.keys, strict=True)
        )

    headings = tuple(map(spelled, table.column_headings))
    return replace(table, columns=spelled(table.columns), column_headings=headings)


def _width(table: Table) -> int:
    """Return the number of characters of a table's widest row."""
    widths = (max(len(each.full_text) for each in column) + 2 for column in zip(*table.cells, strict=True))
    return max(map(len, (table.corner, *table.rows))) + sum(widths)


def _parts(table: Table) -> Iterator[Table]:
    """Yield tables of fewer columns if a table is wider than a page. They end where an outer heading ends."""

    def columns(first: int, last: int) -> Table:
        return replace(
            table,
            columns=table.columns[first:last],
            cells=tuple(cells[first:last] for cells in table.cells),
            keys=table.keys[first:last],
            column_headings=tuple(line[first:last] for line in table.column_headings),
        )

    first = end = 0
    for _, count in next((runs for runs in table.heading_spans() if len(runs) > 1), ()):
        if end > first and _width(columns(first, end + count)) > MAX_PAGE_TEXT:
            yield columns(first, end)
            first = end
        end += count
    yield columns(first, len(table.columns))


def _tabular_lines(table: Table, *, aligned: bool) -> list[str]:
    columns = list(zip(*table.cells, strict=True))
    # text after the numbers of a column, such as an interval, is in a LaTeX column of its own
    spans = [1 + any(map(_rest, column)) for column in columns]
    sides = [
        _WRAPPED if any(map(_is_long, column)) else _aligned_side(column) if aligned else "r"
        for column in columns
    ]
    specification = "".join(
        side + r"@{\enspace}l" * (span - 1) for side, span in zip(sides, spans, strict=True)
    )
    names = (
        _head(escape(name), span, aligned=aligned) for name, span in zip(table.columns, spans, strict=True)
    )
    ends, heads = [0, *accumulate(spans)], " & ".join([escape(table.corner), *names])
    lines = [rf"  \begin{{tabular}}{{@{{}}l{specification}@{{}}}}", r"    \toprule"]
    for headings in table.heading_spans():
        texts, rules, column = [], [], 0
        for name, count in headings:
            first, last = 2 + ends[column], 1 + ends[column + count]
            over = last - first + 1
            texts.append(rf"\multicolumn{{{over}}}{{c}}{{{escape(name)}}}" if name else "& " * (over - 1))
            rules += [rf"\cmidrule(lr){{{first}-{last}}}"] if name else []
            column += count
        lines.append(rf"    & {' & '.join(texts).strip()} \\ {''.join(rules)}".rstrip())
    lines += [rf"    {heads} \\", r"    \midrule"]
    for number, (heading, rows) in enumerate(table.row_groups()):
        if heading:
            over = rf"\multicolumn{{{1 + sum(spans)}}}{{@{{}}l}}{{\textit{{{escape(heading)}}}}}"
            space = r"\addlinespace " if number else ""
            lines.append(rf"    {space}{over} \\")
        for row in rows:
            name = (r"\quad " if heading else "") + escape(table.rows[row])
            lines += _row(name, table.cells[row], spans, aligned=aligned)
    return [*lines, r"    \bottomrule", r"  \end{tabular}"]


def _is_long(cell: Cell) -> bool:
    """Return whether a cell has words, not a number, that are broken into lines."""
    return cell.estimate is None and len(cell.full_text) > MAX_CELL_TEXT


def _aligned_side(column: Sequence[Cell]) -> str:
    """Return siunitx's specification of a column, with room for its longest number; `c` without numbers."""
    known = [(cell, found) for cell in column if (found := _NUMBER.fullmatch(cell.text))]
    if not known:
        return "c"
    sign = "-" if any(found[1] for _, found in known) else ""
    whole, decimals, spread = (
        max(map(len, parts))
        for parts in (
            [found[2].replace(",", "") for _, found in known],
            [found[3] or "" for _, found in known],
            [re.sub(r"\D", "", cell.spread) for cell, _ in known],
        )
    )
    return f"S[table-format={sign}{whole}.{decimals}{f'({spread})' if spread else ''}]"


def _row(name: str, cells: Sequence[Cell], spans: Sequence[int], *, aligned: bool) -> list[str]:
    """Return the LaTeX lines of a table row.

    The study's numbers are in the first line, and those of each paper below. A line without numbers is left
    out.
    """
    ours = " & ".join(_ours(cell, span, aligned=aligned) for cell, span in zip(cells, spans, strict=True))
    lines = [f"& {ours}"] if any(cell.full_text or cell.marks for cell in cells) else []
    for number in range(max(len(cell.lines_below) for cell in cells)):
        below = [each.lines_below[number : number + 1] for each in cells]
        texts = [_published(*each) if each else "" for each in below]
        theirs = (_head(text, span, aligned=aligned) for text, span in zip(texts, spans, strict=True))
        lines.append(f"& {' & '.join(theirs)}")
    names = [f"{name} ", *[""] * len(lines)]
    rows = [rf"    {first}{line} \\" for first, line in zip(names, lines or [f"& {ours}"], strict=False)]
    if any(cell.lines_below for cell in cells):
        rows[-1] += r" \addlinespace"
    return rows


def _published(line: PublishedLine) -> str:
    marks = rf"\textsuperscript{{{escape(','.join(line.marks))}}}" if line.marks else ""
    return rf"{{\scriptsize {escape(line.text)}{marks}}}"


def _head(text: str, span: int, *, aligned: bool) -> str:
    """Return a text over `span` LaTeX columns. In a column of numbers, siunitx needs braces around it."""
    if span > 1:
        return rf"\multicolumn{{{span}}}{{c}}{{{text}}}"
    return f"{{{text}}}" if aligned else text


def _ours(cell: Cell, span: int, *, aligned: bool) -> str:
    """Return the study's number with its spread, and all that follows it. The best is bold."""

    def bold(text: str) -> str:
        return rf"\textbf{{{escape(text)}}}" if cell.best else escape(text)

    # marks take no width, so that the numbers of a column are aligned
    marks = rf"\rlap{{\textsuperscript{{{escape(','.join(cell.marks))}}}}}" if cell.marks else ""
    if _is_long(cell):
        return rf"\raggedright\let\\\tabularnewline {bold(cell.full_text)}{marks}"
    found, rest = _NUMBER.fullmatch(cell.text), _rest(cell)
    if aligned and found:
        number = f"{'-' * bool(found[1])}{found[2].replace(',', '')}{f'.{found[3]}' if found[3] else ''}"
        number += f" +- {cell.spread.replace(',', '')}" if cell.spread else ""
        number = rf"\bfseries {number}" if cell.best else number
        return f"{number}{f' & {escape(rest)}' if span > 1 else ''}{marks}"
    if aligned or span == 1 or cell.estimate is None:
        return _head(bold(cell.full_text) + marks, span, aligned=aligned)
    number = bold(f"{cell.text} ± {cell.spread}" if cell.spread else cell.text)
    return f"{number} & {bold(rest)}{marks}" if rest else f"{number}{marks} &"


def _rest(cell: Cell) -> str:
    """Return the text after a number and its spread: an interval, a difference in parentheses, or both."""
    difference = f"({cell.difference_text})" if cell.difference_text else ""
    return " ".join(part for part in (cell.interval, difference) if part)


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
    """Return the text as LaTeX code: special characters are escaped.

    Characters that T1 lacks are composed of others if possible. Else they stay: see `unicode_note`.
    """
    composed = unicodedata.normalize("NFC", replace_unprintable(text))
    # TeX would join two hyphens to a dash
    return "".join(map(_escape_character, composed)).replace("--", "-{}-")


def _escape_character(char: str) -> str:
    r"""Return the LaTeX code of one character.

    A replacement is made of simpler characters, as `\textsuperscript{2}` for ².
    """
    if char in _ESCAPES or char.isascii():
        return _ESCAPES.get(char, " " if char.isspace() else char)
    if _is_in_t1(char):
        return char
    parts = unicodedata.normalize("NFKD", char)
    mark = {"<super>": "textsuperscript", "<sub>": "textsubscript"}.get(
        unicodedata.decomposition(char).partition(" ")[0]
    )
    if parts != char and all(each.isascii() or each in _ESCAPES or _is_in_t1(each) for each in parts):
        made = "".join(map(_escape_character, parts))
        return rf"\{mark}{{{made}}}" if mark else made
    return char


def _is_in_t1(char: str) -> bool:
    parts = unicodedata.normalize("NFKD", char)
    is_accented = parts[0].isascii() and any(map(unicodedata.combining, parts)) and char <= "\u017f"
    return char in _LETTERS_OF_T1 or is_accented
