"""Base classes for the tables of a study file.

Tables are frozen; they allow neither unknown keys nor conversions of types. Pydantic's errors are reworded,
and so are types and defaults of keys.
"""

from __future__ import annotations

import ast
import datetime
import inspect
import json
import linecache
import textwrap
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from itertools import chain, pairwise
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, ErrorDetails
from pydantic_core.core_schema import no_info_before_validator_function

from ...errors import ActivememError, nearest, nearest_hint, validation_fault
from ...errors import hint as near_hint
from ...plugins import Registry, contract_faults
from .key_synonyms import ELSEWHERE, SYNONYMS
from .toml_positions import KeyPath
from .units import listed, plural


class StrictModel(BaseModel):
    """Base class for tables of a study file.

    The docstring below a key is its description, shown in `docs/reference/`.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", defer_build=True)

    @classmethod
    def keys_of_table(cls) -> Iterable[str]:
        """Return the keys of the table, with those that other classes read."""
        return cls.model_fields

    def __init_subclass__(cls, *, table: str = "", **kwargs: Any) -> None:  # noqa: ANN401 -- Pydantic's
        """Register the subclass in KEY_OWNERS under the name `table`, if one is given."""
        super().__init_subclass__(**kwargs)
        if table:
            KEY_OWNERS[table] = cls


KEY_OWNERS: dict[str, type[StrictModel]] = {}
"""The tables whose keys are known without a study file, by name."""


@cache
def key_descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Return the keys of a table's class with their docstrings, or "" if the source code is missing."""
    found: dict[str, str] = {}
    for base in reversed(model.__mro__[: model.__mro__.index(BaseModel)]):
        try:
            told = _field_docstrings(base)
        except (OSError, TypeError):  # a class of an interactive session
            told = dict.fromkeys(model.model_fields.keys() - found, "")
        found |= {name: text for name, text in told.items() if name in model.model_fields}
    return found


def _field_docstrings(cls: type) -> dict[str, str]:
    """Return the docstrings below the fields of a class. Raise OSError or TypeError without its source."""
    file = inspect.getsourcefile(cls) or ""
    linecache.checkcache(file)
    # of the whole file at once, which `inspect.getsource` would parse again for each class
    told = _docstrings_by_class("".join(linecache.getlines(file))).get(cls.__qualname__)
    if told is None:
        told = _docstrings_by_class(textwrap.dedent(inspect.getsource(cls)))[cls.__name__]
    return told


@cache
def _docstrings_by_class(source: str) -> dict[str, dict[str, str]]:
    """Return the docstrings below the fields of each class at the top of a source."""
    found: dict[str, dict[str, str]] = {}
    for definition in ast.parse(source).body:
        if isinstance(definition, ast.ClassDef):
            told = found.setdefault(definition.name, {})
            for key, below in pairwise(definition.body):
                match key, below:
                    case (
                        ast.AnnAssign(target=ast.Name(id=name)),
                        ast.Expr(value=ast.Constant(value=str(text))),
                    ):
                        told[name] = inspect.cleandoc(text)
                    case _:
                        pass
    return found


@dataclass(frozen=True, slots=True)
class KnownNames:
    """Annotation of a key whose value must be one of several known names.

    If the key is missing, the error message lists the names that `list_names` returns.
    """

    list_names: Callable[[], Iterable[str]]


def class_faults(
    settings: type[BaseModel],
    base: type[BaseModel],
    given: Collection[str] = ("name",),
    *,
    needs_defaults: bool = True,
) -> list[str]:
    """List missing parts of a plug-in's settings class, such as defaults or docstrings.

    Keys in `given` need neither a default nor a docstring.
    """
    missing = contract_faults(settings, base)
    if not (isinstance(settings, type) and issubclass(settings, base)):
        return missing
    fields = {key: field for key, field in settings.model_fields.items() if key not in given}
    bare = fields.keys() - key_descriptions(settings)
    return [
        *missing,
        *(f"{key}: expected a docstring below it" for key in bare),
        *(
            f"{key}: expected a default"
            for key, field in fields.items()
            if needs_defaults and field.is_required()
        ),
    ]


ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class ValidationProblem:
    """An error message about a value in a table, or about its key.

    `path` leads to the value. The message is about the key if `key` is True. `meant` is the place of this key
    in a study file, such as `train.optimizer.lr`, if the message sends it there. It begins with a dot if it
    is in the table of the faulty key: `.optimizer.lr`.
    """

    path: KeyPath
    message: str
    key: bool = False
    meant: str = ""

    def __str__(self) -> str:
        """Return the path and the message: `train.epochs: expected …`."""
        return ": ".join([*([".".join(map(str, self.path))] if self.path else []), self.message])


class InvalidTableError(ActivememError):
    """Error for an invalid table of a study file. The text lists every problem with its path."""

    def __init__(self, problems: tuple[ValidationProblem, ...]) -> None:
        self.problems = problems
        super().__init__("; ".join(map(str, problems)))


def validate(model: type[ModelT], data: Mapping[str, Any]) -> ModelT:
    """Return a table as an object of its Pydantic class; raise InvalidTableError if it is invalid.

    A whole number may be written as a float without a fraction, as in 1e6. A list becomes a tuple where the
    class expects one.
    """
    left = _MAX_PASSES
    while True:
        try:
            return model.model_validate(data)
        except ValidationError as error:
            left -= 1
            convertible = [each["loc"] for each in error.errors() if _is_convertible(each)]
            if not convertible or not left:
                raise InvalidTableError(tuple(_problems(model, error.errors()))) from error
        for path in convertible:
            data = _converted(data, path)


_MAX_PASSES = 4
"""Each pass converts what Pydantic reports: first a list, then lists in it, then numbers in these."""

_LARGEST_EXACT = 2.0**53
"""Up to this number, floats represent every whole number."""


def _is_convertible(error: ErrorDetails) -> bool:
    kind, value = error["type"], error["input"]
    if kind == "int_type" and isinstance(value, float):
        return value.is_integer() and abs(value) <= _LARGEST_EXACT
    return kind == "tuple_type" and isinstance(value, list)


def _converted(value: Any, path: KeyPath) -> Any:  # noqa: ANN401 -- TOML holds anything
    """Return a copy of a value in which the float at a path is an integer, or the list there a tuple.

    The path may also have names of types, which Pydantic adds for a union.
    """
    match value:
        case float():
            return int(value)
        case Mapping() if path and path[0] in value:
            return {**value, path[0]: _converted(value[path[0]], path[1:])}
        case list() | tuple() if path and path[0] in range(len(value)):
            return type(value)(
                _converted(each, path[1:]) if at == path[0] else each for at, each in enumerate(value)
            )
        case list() if not path:
            return tuple(value)
        case _:
            return _converted(value, path[1:]) if path else value


def _without_misspelt_keys(model: type[BaseModel], errors: list[ErrorDetails]) -> list[ErrorDetails]:
    """Drop the errors of missing keys that are only misspelt: one message is enough."""
    meant = set[tuple[object, ...]]()
    for *around, key in (error["loc"] for error in errors if error["type"] == "extra_forbidden"):
        known = _model_at(model, tuple(around)).model_fields
        synonym = SYNONYMS.get(str(key).lower())
        meant.add((*around, synonym if synonym in known else nearest(str(key), known)))
    return [error for error in errors if error["type"] != "missing" or error["loc"] not in meant]


def _problems(model: type[BaseModel], errors: list[ErrorDetails]) -> Iterator[ValidationProblem]:
    for error in _without_misspelt_keys(model, errors):
        path, context = error["loc"], error.get("ctx", {})
        match error["type"]:
            case "extra_forbidden":
                table = _model_at(model, path[:-1])
                hint, meant = _unknown_key_hint(str(path[-1]), table, error["input"])
                yield ValidationProblem(path, f"unknown key '{path[-1]}'{hint}", True, meant)
            case "missing" if isinstance(path[-1], int):
                yield ValidationProblem(path[:-1], f"expected {path[-1] + 1} values, got {path[-1]}")
            case "missing":
                field = _model_at(model, path[:-1]).model_fields[str(path[-1])]
                known = (item.list_names() for item in field.metadata if isinstance(item, KnownNames))
                hint = nearest_hint("", chain.from_iterable(known))
                yield ValidationProblem(path[:-1], f"missing key '{path[-1]}'{hint}")
            case "too_short" | "too_long" as kind:
                bound, key = ("least", "min_length") if kind == "too_short" else ("most", "max_length")
                values, got = plural(context[key], "value"), context["actual_length"]
                yield ValidationProblem(path, f"expected at {bound} {values}, got {got:,}")
            case "string_too_long":
                count = len(error["input"])
                yield ValidationProblem(
                    path, f"expected at most {context['max_length']:,} characters, got {count:,}"
                )
            case "value_error" if isinstance(context["error"], InvalidTableError):
                inner = context["error"].problems
                yield from (replace(problem, path=(*path, *problem.path)) for problem in inner)
            case _:
                message = validation_fault(error, format_value(error["input"]))
                key, _, rest = message.partition(": ")  # the check of a table may name one of its keys
                if isinstance(error["input"], Mapping) and key.isidentifier():
                    path, message = (*path, key), rest
                yield ValidationProblem(path, message)


class PartSettings(StrictModel):
    """Settings of a part of a study whose `name` selects its other keys, such as the sampler.

    A part without keys of its own may be written as a name, such as `sampler = "random"`.
    """

    name: str
    """its name"""

    def __hash__(self) -> int:
        """Return a hash, also if a plug-in's key holds a list or a table."""
        return hash(repr(self))


class NamedSettings(PartSettings):
    """A part of a study, such as the optimizer, whose names and classes are in a registry."""

    registry: ClassVar[Registry[Any]]

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if name not in cls.registry:
            raise ValueError(_unknown_name(cls.registry.kind, name, cls.registry))
        if not issubclass(cls.registry[name].settings, cls):
            raise ValueError(f"the {cls.registry.kind} {name} has other settings")
        return name


def _unknown_name(kind: str, name: str, names: Collection[str]) -> str:
    return (
        f"unknown {kind} '{name}'{nearest_hint(name, names) if names else ': no plug-in has registered any'}"
    )


@dataclass(frozen=True, slots=True)
class PartReader:
    """Pydantic annotation of a part of a study: its `name` selects the class that checks its keys.

    `names` are the valid names, `find` returns the class of a name. With `is_short`, a name is short for a
    table with only that name. If the name is misspelt, the other keys are checked as those of the right name,
    if that is clear.
    """

    kind: str
    base: type[PartSettings]
    names: Collection[str]
    find: Callable[[str], type[PartSettings]]
    is_short: bool = False

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return Pydantic's schema of the base class, after this reader."""
        return no_info_before_validator_function(self.read, handler(source))

    def __get_pydantic_json_schema__(self, source: CoreSchema, _: object) -> dict[str, Any]:
        """Return this reader, in place of which `json_schema.py` writes the JSON Schema of each name."""
        return {PART: self}

    def read(self, given: object) -> object:
        """Return the settings of a part; raise ValueError with every fault."""
        if given is None or isinstance(given, self.base):
            return given
        if isinstance(given, str) and not self.is_short:
            raise ValueError(f'expected a table such as {{ name = "{given}" }}, got {format_value(given)}')
        table = part_table(given)
        if not isinstance(given, str | Mapping):
            raise ValueError(f"expected {'a text or ' * self.is_short}a table, got {format_value(given)}")
        if "kind" in table and "name" not in table:
            raise ValueError(f"unknown key 'kind': write name = {json.dumps(table['kind'], default=str)}")
        name = table.get("name", self.base.model_fields["name"].default)
        if not isinstance(name, str):
            return {key: value for key, value in table.items() if key in self.base.model_fields}
        if name in self.names:
            model = self.find(name)
            needed = [
                key for key, field in model.model_fields.items() if field.is_required() and key != "name"
            ]
            if isinstance(given, str) and needed:
                keys = "".join(f", {key} = …" for key in needed)
                raise ValueError(f'{name} needs more keys: write {{ name = "{name}"{keys} }}')
            return self._validate(name, table)
        place = () if isinstance(given, str) else ("name",)
        problems = [ValidationProblem(place, _unknown_name(self.kind, name, self.names))]
        # a name that is less alike may be that of a plug-in that is not loaded
        like = next(iter(get_close_matches(name.lower(), self.names, n=1, cutoff=0.7)), None)
        if isinstance(given, Mapping) and like:
            try:
                self._validate(like, {**table, "name": like})
            except InvalidTableError as error:
                problems += error.problems
        raise InvalidTableError(tuple(problems))

    def _validate(self, name: str, table: Mapping[str, Any]) -> PartSettings:
        try:
            return validate(self.find(name), table)
        except InvalidTableError as error:
            raise InvalidTableError(tuple(_with_owner(each, name) for each in error.problems)) from error

    def example(self, key: str, value: object) -> str:
        """Return this part as a table that has a key, or "" if the part has no such key."""
        shown = json.dumps(value) if isinstance(value, str | int | float) else "…"
        owners = (name for name in self.names if key != "name" and key in self.find(name).model_fields)
        return next((f'{{ name = "{name}", {key} = {shown} }}' for name in owners), "")


PART = "x-part"
"""The key under which a JSON Schema that is not complete yet has the reader of a part."""


def readers_in(field: FieldInfo) -> Iterator[PartReader]:
    """Yield the reader of the part that a key takes, or of the parts in its list, if it takes any."""
    inner = (each for kind in get_args(field.annotation) for each in getattr(kind, "__metadata__", ()))
    yield from (each for each in (*field.metadata, *inner) if isinstance(each, PartReader))


def _with_owner(problem: ValidationProblem, name: str) -> ValidationProblem:
    """Add the name of a part to the problem of a key that only this part lacks."""
    if not problem.key or len(problem.path) != 1:
        return problem
    unknown = f"unknown key '{problem.path[0]}'"
    return replace(problem, message=f"{unknown} of {name}{problem.message.removeprefix(unknown)}")


def with_values(tables: Mapping[str, Any], values: Mapping[KeyPath, Any]) -> Mapping[str, Any]:
    """Return nested tables and lists with these values at their paths. The given tables do not change."""
    for path, value in values.items():
        tables = _with_value(tables, path, value)
    return tables


def _with_value(table: Any, path: KeyPath, value: Any) -> Any:  # noqa: ANN401 -- TOML holds anything
    if not path:
        return value
    inner = _with_value(table[path[0]] if path[1:] else None, path[1:], value)
    if isinstance(table, list):
        return [inner if index == path[0] else each for index, each in enumerate(table)]
    return {**table, path[0]: inner}


def as_table(value: object) -> Mapping[str, Any]:
    """Return a value of a study file if it is a table, else an empty table."""
    return value if isinstance(value, Mapping) else {}


def part_table(given: object) -> Mapping[str, Any]:
    """Return a part of a study as a table: `{name = "tpe"}` for `"tpe"`."""
    return {"name": given} if isinstance(given, str) else as_table(given)


def read_named(base: type[NamedSettings]) -> PartReader:
    """Return the reader of a part whose names are in the registry of its class."""
    return PartReader(base.registry.kind, base, base.registry, lambda name: base.registry[name].settings)


def format_value(value: object) -> str:
    """Return a value as error messages show it: `true`, `'abc'`, `a table` or `a list of 3`."""
    match value:
        case bool():
            return str(value).lower()
        case dict():
            return "a table"
        case list() | tuple():
            return f"a list of {len(value)}" if value else "an empty list"
        case datetime.date() | datetime.time():  # a datetime is a date
            return value.isoformat()
        case _:
            return repr(value)


def _model_at(model: type[BaseModel], path: KeyPath) -> type[BaseModel]:
    for part in path:
        if isinstance(part, int):  # the index of a table in a list
            continue
        model = next(tables_in(model.model_fields[str(part)].annotation))
    return model


def _unknown_key_hint(key: str, table: type[BaseModel], value: object) -> tuple[str, str]:
    """Return a hint at the probable key, which is in this table, in its inner tables or in another table.

    Return also the key's place if it is not in this table itself: see `ValidationProblem`.
    """
    synonym = SYNONYMS.get(key.lower(), key)
    fields = (*(table.keys_of_table() if issubclass(table, StrictModel) else table.model_fields),)
    if synonym in fields:
        return f"; nearest: {synonym}", ""
    if key.lower() not in ELSEWHERE:
        for name, field in table.model_fields.items():
            for reader in readers_in(field):
                if reader.is_short and (example := reader.example(synonym, value)):
                    return f": write {name} = {example}", ""
    what = "it" if synonym == key else synonym
    if owners := _inner_owners(table, synonym):
        hint = f"; write {what} in {listed(owners, 'or')}, as in {owners[0]} = {{ {synonym} = … }}"
        return hint, f".{owners[0]}.{synonym}"
    if key.lower() in ELSEWHERE:
        return f"; {ELSEWHERE[key.lower()]}", ""
    if not near_hint(key, fields) and (place := key_place(synonym)):
        owner, *inner = place.split(".")
        example = f", as in {inner[0]} = {{ {synonym} = … }}" if inner[1:] else ""
        return f"; write {what} in [{owner}]{example}", place
    return nearest_hint(key, fields), ""


def known_keys() -> set[str]:
    """Return the keys of the tables that are known without a study file, without those of inner tables."""
    return {key for table in [*KEY_OWNERS.values()] for key in table.keys_of_table()}


def key_place(key: str) -> str:
    """Return the place of a key in the tables that are known without a study file, or "".

    For example `train.epochs`, or in an inner table `train.optimizer.lr`.
    """
    owners = [*KEY_OWNERS.items()]
    if name := next((name for name, table in owners if key in table.keys_of_table()), None):
        return f"{name}.{key}"
    inner = (f"{name}.{part}.{key}" for name, table in owners for part in _inner_owners(table, key))
    return next(inner, "")


def _inner_owners(table: type[BaseModel], key: str) -> list[str]:
    """Return the keys of a table that take inline tables with this key."""
    return [
        name
        for name, field in table.model_fields.items()
        if any(key in _keys_of(model) for model in tables_in(field.annotation))
    ]


def _keys_of(model: type[BaseModel]) -> set[str]:
    """Return the keys of a table. If they depend on its `name`, return the keys of all names together."""
    if not issubclass(model, NamedSettings):
        return set(model.model_fields)
    return set(model.model_fields).union(*(each.settings.model_fields for each in model.registry.values()))


def tables_in(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the Pydantic models that occur in a type, for example in `list[Model] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from tables_in(inner)


_TYPE_NAMES = {str: "text", int: "whole number", float: "number", bool: "true or false", Any: "any"}


def type_words(field: FieldInfo) -> str:
    """Return the type and the bounds of a key in words, such as `whole number, at least 1`."""
    ends = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    bounds = [
        f"{word} {getattr(rule, end):.10g}"
        for rule in field.metadata
        for end, word in ends.items()
        if getattr(rule, end, None) is not None and abs(getattr(rule, end)) < 2**31
    ]
    return ", ".join([_format_type(field.annotation), *bounds])


def _format_type(kind: Any) -> str:  # noqa: ANN401, PLR0911 -- a type of any form, one return for each
    origin, kinds = get_origin(kind), get_args(kind)
    if origin is Literal:
        return " or ".join(f'"{word}"' for word in kinds)
    if origin is Annotated:
        return _format_type(kinds[0])
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_format_type(one) for one in kinds if one is not types.NoneType))
    if origin in (list, tuple):
        if kinds[1:] and kinds[-1] is not Ellipsis:
            return f"list of {len(kinds)}"
        item = _format_type(kinds[0])
        return f"list of {item}{'s' if item[-1].isalpha() else ''}"
    if origin is dict or (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return "table"
    return _TYPE_NAMES.get(kind, "any")


def default_words(field: FieldInfo) -> str:
    """Return the default of a key as TOML, or `required`, `none` or `empty`.

    The default of a table whose keys have defaults is "".
    """
    value = field.get_default(call_default_factory=True)
    if field.is_required():
        return "required"
    if isinstance(value, StrictModel):
        if value.model_fields_set != {"name"}:
            return ""
        value = dict(value)["name"]
    if value is None or value in ({}, (), []):
        return "none" if value is None else "empty"
    text = f'"{value}"' if isinstance(value, str) else list(value) if isinstance(value, tuple) else value
    return str(text).lower() if isinstance(value, bool) else str(text)
