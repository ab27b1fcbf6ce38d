"""A table as LaTeX: a booktabs float for an article, shrunk to the line if it is wider."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from ....diagnostics import replace_unprintable
from ..table import Cell, Table

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "[": "{[}",  # after the end of a line it would begin an option,
    "*": "{*}",  # and this would be one
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
"""What no accent makes and the encoding of fonts that the first line asks for has nevertheless."""


def render(table: Table) -> str:
    """A `table` environment; the published numbers are in small type on a second line of each row."""
    heads = " & ".join(map(_escape, (table.corner, *table.columns)))
    lines = [
        r"% \usepackage[T1]{fontenc} \usepackage{textcomp,booktabs,graphicx}",
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{_escape(' '.join(table.caption))}}}",
        rf"  \label{{tab:{table.name}}}",
        r"  \medskip",
        r"  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"  \begin{{tabular}}{{@{{}}l{'r' * len(table.columns)}@{{}}}}",
        r"    \toprule",
        *_heading_lines(table),
        rf"    {heads} \\",
        r"    \midrule",
    ]
    for number, (heading, rows) in enumerate(table.row_groups()):
        indent = r"\quad " if heading else ""
        if heading:
            over = rf"\multicolumn{{{1 + len(table.columns)}}}{{@{{}}l}}{{\textit{{{_escape(heading)}}}}}"
            space = r"\addlinespace " if number else ""
            lines.append(rf"    {space}{over} \\")
        for row in rows:
            lines += _row(indent + _escape(table.rows[row]), table.cells[row])
    lines += [r"    \bottomrule", r"  \end{tabular}}", "", r"  \smallskip", r"  \begin{minipage}{\linewidth}"]
    below = [rf"\textsuperscript{{{_escape(note.mark)}}}~{_escape(note.text)}" for note in table.footnotes]
    below.append(_escape(table.provenance))
    lines.append("    \\footnotesize\\raggedright\n    " + " \\\\\n    ".join(below))
    return "\n".join([*lines, r"  \end{minipage}", r"\end{table}", ""])


def _heading_lines(table: Table) -> list[str]:
    """The headings above several columns, each with a rule below it."""
    lines = []
    for spans in table.heading_spans():
        texts, rules, column = [], [], 2
        for name, over in spans:
            texts.append(rf"\multicolumn{{{over}}}{{c}}{{{_escape(name)}}}" if name else "& " * (over - 1))
            rules += [rf"\cmidrule(lr){{{column}-{column + over - 1}}}"] if name else []
            column += over
        lines.append(rf"    & {' & '.join(texts).strip()} \\ {''.join(rules)}")
    return lines


def _row(name: str, cells: Sequence[Cell]) -> list[str]:
    """The line of a row and the paper's below it; just one if either has nothing."""
    published = rf"{' & '.join(map(_published, cells))} \\ \addlinespace"
    if not any(cell.published_text for cell in cells):
        return [rf"    {name} & {' & '.join(map(_ours, cells))} \\"]
    if not any(cell.full_text or cell.marks for cell in cells):
        return [rf"    {name} & {published}"]
    return [rf"    {name} & {' & '.join(map(_ours, cells))} \\", rf"    & {published}"]


def _ours(cell: Cell) -> str:
    """Our number with its marks, which take no width so that numbers are aligned."""
    text = rf"\textbf{{{_escape(cell.full_text)}}}" if cell.best else _escape(cell.full_text)
    return text + (rf"\rlap{{\textsuperscript{{{','.join(cell.marks)}}}}}" if cell.marks else "")


def _published(cell: Cell) -> str:
    """The paper's number in small type."""
    return rf"{{\footnotesize {_escape(cell.published_text)}}}" if cell.published_text else ""


def _escape(text: str) -> str:
    """The text in characters that LaTeX takes in T1, with special ones escaped."""
    return "".join(map(_escape_character, replace_unprintable(text))).replace("--", "-{}-")


def _escape_character(char: str) -> str:
    """One character: as it is, as a command, as what it is made of, and else as its number."""
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
