"""How levels and reasons are written in tables: on one line, and so that no terminal obeys them."""

from __future__ import annotations

from .settings import Level


def one_line(text: str) -> str:
    """The text with single spaces, and a sign for every character that cannot be printed."""
    return "".join(
        sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in " ".join(text.split())
    )


def level_text(level: Level) -> str:
    """A factor's level as a row or a column is called; booleans as TOML has them."""
    return str(level).lower() if isinstance(level, bool) else one_line(str(level))
