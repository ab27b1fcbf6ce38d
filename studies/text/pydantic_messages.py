"""What pydantic finds wrong with a table, in our words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from .errors import nearest_hint
from .toml_positions import KeyPath

_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a table",
    "finite_number": "a finite number",
    "float_type": "a number",
    "greater_than": "a number above {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "less_than": "a number below {lt:g}",
    "less_than_equal": "at most {le:g}",
    "literal_error": "{expected}",
    "list_type": "a list",
    "model_type": "a table",
    "string_pattern_mismatch": "a letter, then up to 99 letters, digits, '-', '_' or '.'",
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


class InvalidTableError(ValueError):
    """A table with all that is wrong in it."""

    def __init__(self, problems: tuple[ValidationProblem, ...]) -> None:
        """Keep the problems; the text has each with its dotted path."""
        self.problems = problems
        super().__init__("; ".join(f"{'.'.join(map(str, p.path))}: {p.message}" for p in problems))


def validate(model: type[ModelT], data: Mapping[str, Any]) -> ModelT:
    """The model of a table's data; ProblemsError if it is none."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise InvalidTableError(tuple(_problems(model, error.errors()))) from error


def _problems(model: type[BaseModel], errors: list[ErrorDetails]) -> Iterator[ValidationProblem]:
    """Each error as a problem; a missing key is told at the table that should have it."""
    for error in errors:
        path, given = error["loc"], error["input"]
        if error["type"] == "extra_forbidden":
            yield ValidationProblem(
                path, f"unknown key '{path[-1]}'{nearest_hint(str(path[-1]), _keys(model, path[:-1]))}", True
            )
        elif error["type"] == "missing" and isinstance(path[-1], int):
            yield ValidationProblem(path[:-1], f"expected {path[-1] + 1} values, got {path[-1]}")
        elif error["type"] == "missing":
            yield ValidationProblem(path[:-1], f"missing key '{path[-1]}'")
        elif error["type"] == "too_long":
            yield ValidationProblem(
                path, "expected {max_length} values, got {actual_length}".format_map(error.get("ctx", {}))
            )
        elif error["type"] == "value_error":
            yield ValidationProblem(path, str(error.get("ctx", {})["error"]))
        else:
            wanted = _EXPECTED[error["type"]].format_map(error.get("ctx", {}))
            yield ValidationProblem(path, f"expected {wanted}, got {format_value(given)}")


def format_value(value: object) -> str:
    """A value as a message shows it."""
    match value:
        case bool():
            return str(value).lower()
        case dict():
            return "a table"
        case list() | tuple():
            return f"a list of {len(value)}" if value else "an empty list"
        case _:
            return repr(value)


def _keys(model: type[BaseModel], path: KeyPath) -> tuple[str, ...]:
    """The keys that a model has at a path inside it."""
    for part in path:
        inner = model.model_fields[str(part)].annotation
        assert isinstance(inner, type) and issubclass(inner, BaseModel)
        model = inner
    return tuple(model.model_fields)
