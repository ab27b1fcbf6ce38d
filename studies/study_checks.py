"""Checks of a study file as a whole: its tables, its header, and keys that need other tables."""

from __future__ import annotations

from ..diagnostics import nearest_hint
from .resolve.template import TRIAL_TABLES
from .schema.settings import DecodeSettings, StudySettings
from .text.document import Diagnostics

_LISTS = ("cells", "table", "curve", "claim")
_OTHERS = ("recipes", "factors", "when", "ladder", "source", "search", "decode")
_KNOWN = ("study", *TRIAL_TABLES, *_OTHERS, *_LISTS)
_NEEDED = ("study", *TRIAL_TABLES)


def check_tables(diagnostics: Diagnostics) -> None:
    """Note tables that are unknown, and those that are missing."""
    data = diagnostics.document.data
    for name in data:
        if name not in _KNOWN:
            diagnostics.report_error((name,), f"unknown table '{name}'{nearest_hint(name, _KNOWN)}", key=True)
    for name in _NEEDED:
        if name not in data:
            diagnostics.report_invalid((name,), "this table is missing")


def read_decode(diagnostics: Diagnostics, header: StudySettings | None) -> DecodeSettings | None:
    """Return the table [decode], if there is one.

    A study that keeps no weights has no model to decode with.
    """
    data = diagnostics.document.data
    if "decode" in data and header is not None and not header.keep_weights:
        diagnostics.report_error(("decode",), "it needs trained models: say keep_weights = true in [study]")
    return diagnostics.validate(DecodeSettings, ("decode",), data["decode"]) if "decode" in data else None


def read_header(diagnostics: Diagnostics) -> StudySettings | None:
    """Return the table [study]; report it and return None if it is missing or invalid."""
    data = diagnostics.document.data
    return diagnostics.validate(StudySettings, ("study",), data["study"]) if "study" in data else None
