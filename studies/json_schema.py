"""The JSON Schema of study files, for completion and checks in editors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from ..grammar.norms import NORMS
from ..grammar.positions import POSITIONS
from .catalog.published import published_tables
from .catalog.tasks import READ_TASK
from .presentation.reader import KINDS
from .resolve.template import TRIAL_TABLES
from .schema.search_settings import SearchSettings
from .schema.settings import StudySettings, TrainSettings
from .schema.tables import all_tables
from .text.strict_model import PART, PartReader, StrictModel, key_descriptions, readers_in

_ANY_TABLE = {"type": "object"}
_NAME = r"^[A-Za-z]\w*$"
_SEED = {"type": "integer", "minimum": 0, "exclusiveMaximum": 2**63}
_LEVELS = {
    "type": ["array", "string", "object"],
    "minItems": 1,
    "items": {"type": ["string", "number", "boolean", "object"]},
}
_FACTORS = {
    "type": "object",
    "propertyNames": {"pattern": _NAME},
    "properties": {"seed": {"type": "array", "minItems": 1, "items": _SEED}},
    "additionalProperties": _LEVELS,
}
_HOLE = {"type": "string", "pattern": r"\{\w+\}", "description": "a hole that a factor fills"}


class _Schema(GenerateJsonSchema):
    """Generator of the JSON Schema of a table in study files."""

    def model_schema(self, schema: Any) -> JsonSchemaValue:  # noqa: ANN401 -- pydantic's private type
        """Return the JSON Schema of a table, with docstrings as the descriptions of its keys."""
        found = super().model_schema(schema)
        for key, text in key_descriptions(schema["cls"]).items():
            found["properties"][key].setdefault("description", text)
        return found

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> JsonSchemaValue:  # noqa: ANN401 -- pydantic's private type
        """Return a schema that allows any value.

        It replaces types that have no JSON Schema. Pydantic's own method raises an error instead.
        """
        return {}


def study_schema() -> dict[str, Any]:
    """Return the JSON Schema of a study file. [model], [task] and [train] may have holes as values.

    Names that no plug-in of this machine registers are allowed if the file names `plugins` in [study].
    """
    definitions: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    for name, table in all_tables().items():
        found = [_table(name, model, definitions) for model in table.models()]
        whole = {**found[0], "properties": {}} if found else _ANY_TABLE
        for each in found:
            whole["properties"] |= each["properties"]
        properties[name] = {"type": "array", "items": whole} if table.is_list else whole
    papers = sorted({paper for paper, _ in published_tables()})
    # a file of published numbers may be of any paper
    known = {"properties": {"paper": {"enum": [*papers, None]}}}
    properties["study"] |= {"if": {"required": ["published"]}, "else": known}
    task = _part(READ_TASK, definitions, holes=True)
    properties |= {
        "task": {"anyOf": [task, {"type": "array", "items": {"anyOf": [task, *_short_names(READ_TASK)]}}]},
        "factors": _FACTORS,
        "recipes": {
            "type": "object",
            "propertyNames": {"pattern": _NAME},
            "additionalProperties": {"type": "string"},
        },
        "source": {"type": "object", "additionalProperties": {"type": ["string", "object"]}},
    }
    for kind in ("table", "curve"):
        kinds = KINDS[kind]
        choices = [*_by_kind(kind, kinds, definitions), _of_plugin("kind", kinds)]
        properties[kind] = {"type": "array", "items": {"anyOf": choices}}
    has_plugins = {"required": ["plugins"], "properties": {"plugins": {"not": {"enum": [[], ""]}}}}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "activemem study",
        "type": "object",
        "anyOf": [{"required": ["study", *TRIAL_TABLES]}, {"required": ["study", "runs"]}],
        "additionalProperties": False,
        "properties": properties,
        "if": {"properties": {"study": has_plugins}},
        "else": {"properties": _known_names()},
        "$defs": definitions,
    }


def _known_names() -> dict[str, Any]:
    """Return JSON Schemas of the keys whose names plug-ins can add: only known names are valid."""
    study, train, search = StudySettings, TrainSettings, SearchSettings
    tables = {
        "study": {"design": study},
        "train": {"optimizer": train, "schedule": train},
        "search": {"sampler": search, "scheduler": search},
    }
    found = {
        table: {
            "properties": {
                key: _named("name", [*reader.names])
                for key, model in keys.items()
                for reader in readers_in(model.model_fields[key])
            }
        }
        for table, keys in tables.items()
    }
    task = _named("name", [*READ_TASK.names])
    found["task"] = {"items": task, **task}
    found["model"] = {
        "properties": {
            key: {"anyOf": [{"enum": [*names]}, _HOLE]}
            for key, names in {"position": POSITIONS, "norm_kind": NORMS}.items()
        }
    }
    for kind in ("table", "curve"):
        found[kind] = {"items": _named("kind", [*KINDS[kind]])}
    return found


def _named(key: str, names: Sequence[str]) -> dict[str, Any]:
    """Return the JSON Schema of one of these names, or of a table that has one of them as its `key`."""
    one = {"anyOf": [{"enum": names}, {"not": {"type": "string"}}, _HOLE]}
    return {**one, "properties": {key: one}}


def _part(reader: PartReader, definitions: dict[str, Any], *, holes: bool) -> dict[str, Any]:
    """Return the JSON Schema of a part: its keys by its name, a short name, or a hole."""
    by_model: dict[type[StrictModel], list[str]] = {}
    for name in reader.names:
        by_model.setdefault(reader.find(name), []).append(name)
    choices: list[dict[str, Any]] = []
    for model, names in by_model.items():
        found = _table("part", model, definitions, holes=holes)
        told = found["properties"]["name"].get("description", "")
        found["properties"]["name"] = {"enum": names, "description": told}
        choices.append(found)
    choices.append(_of_plugin("name", reader.names))
    choices += _short_names(reader) if reader.is_short else []
    return {"anyOf": [*choices, _HOLE] if holes else choices}


def _short_names(reader: PartReader) -> list[dict[str, Any]]:
    """Return the JSON Schemas of the names that need no other key."""
    needy = [
        name
        for name in reader.names
        if any(field.is_required() for key, field in reader.find(name).model_fields.items() if key != "name")
    ]
    return [{"type": "string", "not": {"enum": needy}}]


def _of_plugin(key: str, known: Iterable[str]) -> dict[str, Any]:
    """Return the JSON Schema of a table whose `key` is a name of a plug-in, which has keys of its own."""
    name = {"type": "string", "not": {"enum": list(known)}, "description": "a name that a plug-in registers"}
    return {"type": "object", "properties": {key: name}, "required": [key]}


def _table(
    name: str, model: type[StrictModel], definitions: dict[str, Any], *, holes: bool | None = None
) -> dict[str, Any]:
    """Return the JSON Schema of a table's keys, and add those of inner tables to `definitions`."""
    holes = name in TRIAL_TABLES if holes is None else holes
    found = model.model_json_schema(ref_template="#/$defs/{model}", schema_generator=_Schema)
    new = {key: _relaxed(each, definitions, holes=holes) for key, each in found.pop("$defs", {}).items()}
    definitions |= new
    return _relaxed(found, definitions, holes=holes)


def _relaxed(schema: dict[str, Any], definitions: dict[str, Any], *, holes: bool) -> dict[str, Any]:
    """Return a JSON Schema that also allows short forms, such as a name in place of a table.

    A name is short for a table with only that name, a single text for a list of it. If `holes`, a hole stands
    for any value.
    """
    if (reader := schema.get(PART)) is not None:
        rest = {key: each for key, each in schema.items() if key != PART}
        return {**rest, **_part(reader, definitions, holes=holes)}
    found: dict[str, Any] = {
        key: [_relaxed(one, definitions, holes=holes) for one in each]
        if key == "anyOf"
        else _relaxed(each, definitions, holes=holes)
        if key in ("items", "additionalProperties") and isinstance(each, dict)
        else {name: _relaxed(one, definitions, holes=holes) for name, one in each.items()}
        if key == "properties"
        else each
        for key, each in schema.items()
    }
    choices = [found]
    if found.get("type") == "array" and found.get("items", {}).get("type") == "string":
        choices.append({"type": "string"})
    if holes and ("enum" in found or found.get("type") in ("number", "integer", "boolean", "array")):
        choices.append(_HOLE)
    if len(choices) == 1:
        return found
    described = {key: found.pop(key) for key in ("description", "title") if key in found}
    return {**described, "anyOf": choices}


def _by_kind(
    name: str, kinds: Mapping[str, type[StrictModel]], definitions: dict[str, Any]
) -> Iterable[dict[str, Any]]:
    for kind, model in kinds.items():
        found = _table(name, model, definitions)
        found["properties"]["kind"] = {"const": kind}
        if kind == "cells":  # a table without `kind` is of this kind
            found["required"] = [each for each in found["required"] if each != "kind"]
        yield found
