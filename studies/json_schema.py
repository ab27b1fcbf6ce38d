"""The JSON Schema of study files, for completion and checks in editors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from .catalog.tasks import task_names
from .presentation.reader import KINDS
from .resolve.template import TRIAL_TABLES
from .schema.settings import DESIGNS, find_design
from .schema.tables import all_tables
from .text.strict_model import StrictModel, key_descriptions

_ANY_TABLE = {"type": "object"}
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
    """Return the JSON Schema of a study file. [model], [task] and [train] may have holes as values."""
    definitions: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    for name, table in all_tables().items():
        found = [_table(name, model, definitions) for model in table.models()]
        whole = {**found[0], "properties": {}} if found else _ANY_TABLE
        for each in found:
            whole["properties"] |= each["properties"]
        properties[name] = {"type": "array", "items": whole} if table.is_list else whole
    designs = list(_designs(definitions))
    plain = [each["properties"]["name"]["const"] for each in designs if set(each["required"]) == {"name"}]
    named = {"type": "string", "not": {"enum": list(DESIGNS)}}
    properties["study"]["properties"]["design"]["anyOf"] = [
        {"enum": plain},
        *designs,
        named,
        _of_plugin("name", DESIGNS),
    ]
    properties |= {
        "task": {"anyOf": [_task(), {"type": "array", "items": {"anyOf": [_task(), {"type": "string"}]}}]},
        "factors": {"type": "object", "additionalProperties": {"type": ["array", "string", "object"]}},
        "recipes": {"type": "object", "additionalProperties": {"type": "string"}},
    }
    for kind in ("table", "curve"):
        kinds = KINDS[kind]
        choices = [*_by_kind(kind, kinds, definitions), _of_plugin("kind", kinds)]
        properties[kind] = {"type": "array", "items": {"anyOf": choices}}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "activemem study",
        "type": "object",
        "required": ["study", *TRIAL_TABLES],
        "additionalProperties": False,
        "properties": properties,
        "$defs": definitions,
    }


def _designs(definitions: dict[str, Any]) -> Iterable[dict[str, Any]]:
    for name in DESIGNS:
        found = _table("design", find_design(name).settings_class, definitions)
        found["properties"]["name"] = {"const": name}
        found["description"] = find_design(name).title
        yield found


def _of_plugin(key: str, known: Iterable[str]) -> dict[str, Any]:
    """Return the JSON Schema of a table whose `key` is a name of a plug-in, which has keys of its own."""
    name = {"type": "string", "not": {"enum": list(known)}, "description": "a name that a plug-in registers"}
    return {"type": "object", "properties": {key: name}, "required": [key]}


def _task() -> dict[str, Any]:
    """Return the JSON Schema of `[task]`: a name and any other keys, which `activemem show NAME` lists."""
    name = {"anyOf": [{"enum": sorted(task_names())}, {"type": "string"}], "description": "the task"}
    return {"type": "object", "properties": {"name": name}, "required": ["name"]}


def _table(name: str, model: type[StrictModel], definitions: dict[str, Any]) -> dict[str, Any]:
    found = model.model_json_schema(ref_template="#/$defs/{model}", schema_generator=_Schema)
    new = {key: _relaxed(each, holes=name in TRIAL_TABLES) for key, each in found.pop("$defs", {}).items()}
    definitions |= new
    return _relaxed(found, holes=name in TRIAL_TABLES)


def _relaxed(schema: dict[str, Any], *, holes: bool) -> dict[str, Any]:
    """Return a JSON Schema that also allows short forms, such as a name in place of a table.

    A name is short for a table with only that name, a single text for a list of it. If `holes`, a hole stands
    for any value.
    """
    found: dict[str, Any] = {
        key: [_relaxed(one, holes=holes) for one in each]
        if key == "anyOf"
        else _relaxed(each, holes=holes)
        if key in ("items", "additionalProperties") and isinstance(each, dict)
        else {name: _relaxed(one, holes=holes) for name, one in each.items()}
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
