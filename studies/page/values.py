"""Every setting of the trials: its value where all share it, else the holes that the file has there.

Defaults are included, so that nothing about the trials is left to guess, and what a later version takes for
a default does not matter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ..positions import KeyPath
from ..settings import Settings
from .markup import Column, Html, Section, code, grid, joined
from .material import Material


def section(material: Material) -> Section | None:
    """A row for each setting, named as in the study file; the seed is a factor."""
    found: dict[KeyPath, dict[str, None]] = {}
    for settings in _all(material):
        for path, value in _flat(settings.model_dump(mode="json", exclude={"seed"})):
            found.setdefault(path, {})[json.dumps(value, ensure_ascii=False)] = None
    if not found:
        return None
    rows = [
        (code(".".join(map(str, path))), _shown(material, path, list(values)))
        for path, values in found.items()
    ]
    body = grid("settings of the trials", [Column("setting"), Column("value", "words")], rows)
    return Section(name="settings", title="Settings", body=body)


def _all(material: Material) -> Iterator[Settings]:
    """The settings of every trial: those of the grid, of a search those that the store has."""
    if material.study.search is None:
        yield from (trial.settings for trial in material.study.trials())
    else:
        yield from map(Settings.model_validate_json, material.own["settings"])


def _flat(table: Mapping[str, Any], path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Every value that is no table, with its path."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, (*path, key))
        else:
            yield (*path, key), value


def _shown(material: Material, path: KeyPath, values: list[str]) -> Html:
    """The one value, or what the file has in its place."""
    written = material.study.template.texts.get(path)
    if len(values) == 1 or written is None:
        return joined((code(_unquoted(each)) for each in values), ", ")
    return code(written)


def _unquoted(value: str) -> str:
    """A text without its quotes, anything else as JSON has it."""
    read = json.loads(value)
    return read if isinstance(read, str) else value
