"""The templates of pages: any text stays text, and each name must exist."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ...diagnostics import replace_unprintable
from ...studies.schema.level_names import level_name, one_line
from ...studies.text.units import format_duration, plural


def _finalize(value: object) -> object:
    return replace_unprintable(value) if type(value) is str else value


def make_environment(*folders: Path) -> Environment:
    """Return the templates of these folders, the first that has one of a name."""
    environment = Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,  # no text of a study file or a store becomes markup,
        finalize=_finalize,  # and no character of it turns what is shown
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "base64": lambda text: b64encode(text.encode()).decode("ascii"),
        "duration": format_duration,
        "level_name": level_name,
        "one_line": one_line,
        "plural": plural,
    }
    return environment
