"""A renderer is a pure function from a table to text; none of them computes a number or a word.

`terminal`, `markdown`, `latex`, `html` and `csv`: one file for each format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..table import Table
from .csv import to_csv
from .html import to_html
from .latex import to_latex
from .markdown import to_markdown
from .terminal import to_terminal

FORMATS: Mapping[str, Callable[[Table], str]] = {
    "rich": to_terminal,
    "markdown": to_markdown,
    "latex": to_latex,
    "html": to_html,
    "csv": to_csv,
}
"""The renderers by the names that users call them by."""

__all__ = ["FORMATS", "to_csv", "to_html", "to_latex", "to_markdown", "to_terminal"]
