"""A table as LaTeX: a booktabs float for an article, shrunk to the line where it is wider."""

from __future__ import annotations

from ..table import Cell, Table

_SIGNS = {
    "\\": r"\textbackslash{}",
    "[": "{[}",  # after a line's end it would open an option,
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
    "×": r"$\times$",
    "·": r"$\cdot$",
    "−": r"$-$",
    "–": r"\textendash{}",
    "…": r"\ldots{}",
    "\N{REPLACEMENT CHARACTER}": "?",
}


def to_latex(table: Table) -> str:
    """A `table` environment; the published numbers stand in small type on a second line of each row."""
    heads = " & ".join(map(_plain, (table.corner, *table.columns)))
    lines = [
        r"% \usepackage[T1]{fontenc} \usepackage{textcomp,booktabs,graphicx}",
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{_plain(' '.join(table.caption))}}}",
        rf"  \label{{tab:{table.name}}}",
        r"  \medskip",
        r"  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        rf"  \begin{{tabular}}{{@{{}}l{'r' * len(table.columns)}@{{}}}}",
        r"    \toprule",
        rf"    {heads} \\",
        r"    \midrule",
    ]
    for row, cells in zip(table.rows, table.cells, strict=True):
        lines.append(rf"    {_plain(row)} & {' & '.join(map(_ours, cells))} \\")
        if any(cell.published and cell.published.text for cell in cells):
            lines.append(rf"    & {' & '.join(map(_papers, cells))} \\ \addlinespace")
    lines += [r"    \bottomrule", r"  \end{tabular}}", "", r"  \smallskip", r"  \begin{minipage}{\linewidth}"]
    below = [rf"\textsuperscript{{{_plain(note.mark)}}}~{_plain(note.text)}" for note in table.footnotes]
    below.append(_plain(table.provenance))
    lines.append("    \\footnotesize\\raggedright\n    " + " \\\\\n    ".join(below))
    return "\n".join([*lines, r"  \end{minipage}", r"\end{table}", ""])


def _ours(cell: Cell) -> str:
    text = rf"\textbf{{{_plain(cell.text)}}}" if cell.best else _plain(cell.text)
    return text + (rf"\rlap{{\textsuperscript{{{','.join(cell.marks)}}}}}" if cell.marks else "")


def _papers(cell: Cell) -> str:
    return (
        rf"{{\footnotesize {_plain(cell.published.text)}}}" if cell.published and cell.published.text else ""
    )


def _plain(text: str) -> str:
    """The text so that no sign in it is a command."""
    return "".join(_SIGNS.get(sign, sign) for sign in text).replace("--", "-{}-")
