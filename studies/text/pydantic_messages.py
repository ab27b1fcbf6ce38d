"""Pydantic's errors in a table, in our words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ...diagnostics import hint as near_hint
from ...diagnostics import nearest_hint
from ...errors import ActivememError
from .strict_model import KnownNames
from .toml_positions import KeyPath

_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a table",
    "finite_number": "a finite number",
    "float_type": "a number",
    "greater_than": "a number above {gt:.10g}",
    "greater_than_equal": "at least {ge:.10g}",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "less_than": "a number below {lt:.10g}",
    "less_than_equal": "at most {le:.10g}",
    "list_type": "a list",
    "model_type": "a table",
    "string_pattern_mismatch": "a letter, then up to 99 letters, digits, '-', '_' or '.'",
    "string_too_short": "a text that is not empty",
    "string_type": "a text",
    "tuple_type": "a list",
}

ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class ValidationProblem:
    """One thing that is wrong at a path of a table; `key` where it is the key itself."""

    path: KeyPath
    message: str
    key: bool = False


class InvalidTableError(ActivememError):
    """A table that is invalid; its text has every problem with its dotted path."""

    def __init__(self, problems: tuple[ValidationProblem, ...]) -> None:
        """Keep the problems."""
        self.problems = problems
        super().__init__("; ".join(f"{'.'.join(map(str, p.path))}: {p.message}" for p in problems))


def validate(model: type[ModelT], data: Mapping[str, Any]) -> ModelT:
    """Return the model of a table's data; raise InvalidTableError if the data are invalid."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise InvalidTableError(tuple(_problems(model, error.errors()))) from error


def _problems(model: type[BaseModel], errors: list[ErrorDetails]) -> Iterator[ValidationProblem]:
    """Each error as a problem; a missing key is reported at the table that should have it."""
    for error in errors:
        path, context = error["loc"], error.get("ctx", {})
        match error["type"]:
            case "extra_forbidden":
                hint = nearest_hint(str(path[-1]), _model_at(model, path[:-1]).model_fields)
                yield ValidationProblem(path, f"unknown key '{path[-1]}'{hint}", True)
            case "missing" if isinstance(path[-1], int):
                yield ValidationProblem(path[:-1], f"expected {path[-1] + 1} values, got {path[-1]}")
            case "missing":
                field = _model_at(model, path[:-1]).model_fields[str(path[-1])]
                known = (item.list_names() for item in field.metadata if isinstance(item, KnownNames))
                hint = nearest_hint("", chain.from_iterable(known))
                yield ValidationProblem(path[:-1], f"missing key '{path[-1]}'{hint}")
            case "too_short":
                text = "expected at least {min_length} values, got {actual_length}"
                yield ValidationProblem(path, text.format_map(context))
            case "too_long":
                text = "expected {max_length} values, got {actual_length}"
                yield ValidationProblem(path, text.format_map(context))
            case "string_too_long":
                count = len(error["input"])
                yield ValidationProblem(
                    path, f"expected at most {context['max_length']:,} characters, got {count:,}"
                )
            case "value_error" if isinstance(context["error"], InvalidTableError):
                inner = context["error"].problems
                yield from (replace(problem, path=(*path, *problem.path)) for problem in inner)
            case "value_error":
                yield ValidationProblem(path, str(context["error"]))
            case "literal_error":
                given, names = error["input"], re.findall(r"'([^']*)'", context["expected"])
                near = near_hint(given, names) if isinstance(given, str) else ""
                got = f"expected {context['expected']}, got {format_value(given)}{near}"
                yield ValidationProblem(path, got)
            case kind:
                expected = _EXPECTED[kind].format_map(context)
                yield ValidationProblem(path, f"expected {expected}, got {format_value(error['input'])}")


def format_value(value: object) -> str:
    """Return a value as messages show it."""
    match value:
        case bool():
            return str(value).lower()
        case dict():
            return "a table"
        case list() | tuple():
            return f"a list of {len(value)}" if value else "an empty list"
        case _:
            return repr(value)


def _model_at(model: type[BaseModel], path: KeyPath) -> type[BaseModel]:
    """Return the model of the table at a path inside another."""
    for part in path:
        if isinstance(part, int):  # a table of a list of them
            continue
        model = next(_models_in(model.model_fields[str(part)].annotation))
    return model


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the models in a type: an optional table is a union, a list of tables has them inside."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)
