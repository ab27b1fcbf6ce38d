"""A table as LaTeX for the package siunitx, which aligns numbers at their decimal points, even in bold."""

from __future__ import annotations

from ..table import Table
from . import latex


def render(table: Table) -> str:
    """Return the same LaTeX float as `latex`, but with columns `S` for numbers."""
    return latex.render(table, aligned=True)
