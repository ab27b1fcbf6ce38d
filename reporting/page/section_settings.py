"""Every setting of the trials: its value where all share it, else the hole in the file.

Defaults are included, so that the page does not depend on the defaults of a later version.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ...studies.resolve.trial import settings_from_json
from ...studies.schema.settings import TrialSettings
from ...studies.text.toml_positions import KeyPath
from .inputs import PageInputs


def values(inputs: PageInputs) -> Mapping[str, object] | None:
    """The texts of each setting, named as in the study file; the seed is a factor."""
    found: dict[KeyPath, dict[str, None]] = {}
    for settings in _iter_settings(inputs):
        for path, value in _flat(settings.model_dump(mode="json", exclude={"seed"})):
            found.setdefault(path, {})[json.dumps(value, ensure_ascii=False)] = None
    written, sheet = inputs.study.template.texts, inputs.study.source_sheet
    return (
        {
            "settings": {
                ".".join(map(str, path)): [written[path]]
                if len(each) > 1 and path in written
                else list(map(_unquoted, each))
                for path, each in found.items()
            },
            "sources": {each.name: str(each.source) for each in sheet.settings if each.source is not None},
        }
        if found
        else None
    )


def _iter_settings(inputs: PageInputs) -> Iterator[TrialSettings]:
    """The settings of every trial: those of the grid, of a search those that the store has."""
    if inputs.study.search is None:
        yield from (trial.settings for trial in inputs.study.trials)
    else:
        yield from map(settings_from_json, inputs.own_outcomes["settings"])


def _flat(table: Mapping[str, Any], path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Every value that is no table, with its path."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, (*path, key))
        else:
            yield (*path, key), value


def _unquoted(value: str) -> str:
    """A text without its quotes, anything else as JSON has it."""
    read = json.loads(value)
    return read if isinstance(read, str) else value
