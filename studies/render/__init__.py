"""A renderer is a pure function from a table to text; none of them computes a number or a word."""

from .csv import to_csv
from .html import to_html
from .latex import to_latex
from .markdown import to_markdown
from .terminal import to_terminal

__all__ = ["to_csv", "to_html", "to_latex", "to_markdown", "to_terminal"]
