"""Types and defaults of study keys in words."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from .strict_model import StrictModel

_TYPE_NAMES = {str: "text", int: "whole number", float: "number", bool: "true or false", Any: "any"}


def type_words(field: FieldInfo) -> str:
    """Return what a key takes, with its bounds: `whole number, at least 1`."""
    ends = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    bounds = [
        f"{word} {getattr(rule, end):.10g}"
        for rule in field.metadata
        for end, word in ends.items()
        if getattr(rule, end, None) is not None and abs(getattr(rule, end)) < 2**31
    ]
    return ", ".join([_format_type(field.annotation), *bounds])


def _format_type(kind: Any) -> str:  # noqa: ANN401 -- a type of any form
    """Return a type in words."""
    if get_origin(kind) in _TYPE_FORMATTERS:
        return _TYPE_FORMATTERS[get_origin(kind)](get_args(kind))
    return "table" if isinstance(kind, type) and issubclass(kind, BaseModel) else _TYPE_NAMES.get(kind, "any")


def _format_union(kinds: tuple[Any, ...]) -> str:
    """Any of several types, or nothing."""
    return " or ".join(_format_type(one) for one in kinds if one is not type(None))


def _format_list(kinds: tuple[Any, ...]) -> str:
    """Return a list of any length, or of a fixed one, in words."""
    plural = kinds[-1] is Ellipsis or len(kinds) == 1
    return f"list of {_format_type(kinds[0])}s" if plural else f"list of {len(kinds)}"


_TYPE_FORMATTERS: Mapping[object, Callable[[tuple[Any, ...]], str]] = {
    Literal: lambda words: " or ".join(f'"{word}"' for word in words),
    Annotated: lambda kinds: _format_type(kinds[0]),
    Union: _format_union,
    types.UnionType: _format_union,
    list: _format_list,
    tuple: _format_list,
    dict: lambda _kinds: "table",
}


def default_words(field: FieldInfo) -> str:
    """Return the default of a key as TOML has it, or `required`, `none`, `empty`."""
    value = field.get_default(call_default_factory=True)
    if field.is_required():
        return "required"
    if isinstance(value, StrictModel):
        return "its keys'"
    if value is None or value in ({}, (), []):
        return "none" if value is None else "empty"
    text = f'"{value}"' if isinstance(value, str) else list(value) if isinstance(value, tuple) else value
    return str(text).lower() if isinstance(value, bool) else str(text)
