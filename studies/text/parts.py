"""Parts of a study that are chosen by name, such as the design or the sampler.

A part without keys of its own is a name, such as `sampler = "random"`. One with keys is a table that also has
the name, such as `sampler = { name = "tpe", multivariate = false }`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from .document import Diagnostics
from .key_synonyms import ELSEWHERE, SYNONYMS
from .strict_model import StrictModel, format_value, validate


class PartSettings(StrictModel):
    """Base class for the settings of a part of a study, such as the sampler.

    Subclasses add the part's keys other than `name`.
    """

    name: str
    """its name"""


def part_table(given: object) -> Mapping[str, Any]:
    """Return a part of a study as a table: `{name = "tpe"}` for `"tpe"`.

    Return an empty table for a value that is neither a name nor a table.
    """
    if isinstance(given, str):
        return {"name": given}
    return given if isinstance(given, Mapping) else {}


def read_part(given: object, find_model: Callable[[str], type[PartSettings]]) -> object:
    """Return the settings of a part of a study, such as its sampler; raise ValueError with every fault.

    `find_model` returns the class of the part with a name, or raises ValueError for an unknown name.
    """
    if given is None or isinstance(given, PartSettings):
        return given
    if not isinstance(given, str | Mapping):
        raise ValueError(f"expected a text or a table, got {format_value(given)}")
    table = part_table(given)
    if "kind" in table and "name" not in table:
        raise ValueError(f"unknown key 'kind': write name = {json.dumps(table['kind'], default=str)}")
    name = table.get("name")
    model = find_model(name) if isinstance(name, str) else PartSettings
    needed = [key for key, field in model.model_fields.items() if field.is_required() and key != "name"]
    if isinstance(given, str) and needed:
        keys = "".join(f", {key} = …" for key in needed)
        raise ValueError(f'{name} needs more keys: write {{ name = "{name}"{keys} }}')
    return validate(model, table)


def report_moved_keys(
    diagnostics: Diagnostics, table: str, part: str, models: Mapping[str, type[PartSettings]]
) -> None:
    """Report and drop keys that belong in an inner table, such as `sampler` of [search].

    `part` is the key of the inner table. `models` has the class of each part that this key can name.
    """
    given = diagnostics.data[table]
    own = part_table(given.get(part))
    moved: dict[str, dict[str, object]] = {}  # for each part, its keys as the file spells them
    for key in given:
        new = SYNONYMS.get(key, key)
        owners = [name for name, model in models.items() if new != "name" and new in model.model_fields]
        if owners and key not in ELSEWHERE:
            name = own.get("name") if own.get("name") in owners else owners[0]
            moved.setdefault(str(name), {})[key] = given[key]
    for name, keys in moved.items():
        new_keys = {SYNONYMS.get(key, key): value for key, value in keys.items()}
        shown = "".join(f", {new} = {_toml(value)}" for new, value in new_keys.items())
        for key in keys:
            message = f"unknown key '{key}': write {part} = {{ name = \"{name}\"{shown} }}"
            diagnostics.report((table, key), message, key=True)
        rest = {key: value for key, value in diagnostics.data[table].items() if key not in keys}
        # with its keys, the part is read without a second fault
        new_part = {part: {**own, **new_keys}} if own.get("name") == name else {}
        diagnostics.data[table] = {**rest, **new_part}


def _toml(value: object) -> str:
    return json.dumps(value) if isinstance(value, str | int | float) else "…"
