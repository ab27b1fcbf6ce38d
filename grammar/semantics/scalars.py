"""Values checked against the parameter that they are for: numbers, words, booleans.

A whole number will do for a real parameter, and becomes a real one; nothing else is converted.
"""

from __future__ import annotations

from ...diagnostics import FaultCollector, hint
from ..nodes import Scalar
from ..syntax.syntax_tree import CallSyntax, NumberSyntax, Syntax
from ..vocabulary.registry import RESERVED_WORDS, lookup
from ..vocabulary.spec import Parameter

_BOOLEANS = {"true": True, "false": False}
_EXPECTED = {"integer": "a whole number", "real": "a number", "boolean": "true or false"}


def parse_untyped_scalar(value: Syntax) -> Scalar | None:
    """Return a number, or a bare name that is no block, for a parameter that is not known."""
    match value:
        case NumberSyntax():
            return value.value
        case CallSyntax(name=name, arguments=None) if lookup(name) is None and name not in RESERVED_WORDS:
            return name
        case CallSyntax(name=name, arguments=None):
            return _BOOLEANS.get(name)
        case _:
            return None


def parse_scalar(
    value: Syntax, parameter: Parameter, span: tuple[int, int], faults: FaultCollector
) -> Scalar | None:
    """Return the number, word or boolean that the parameter takes; else None, with a fault over the span."""
    found = _convert(value, parameter)
    if found is None:
        got = faults.quote(value.start, value.end)
        wanted = (
            f"one of {', '.join(parameter.words)}" if parameter.kind == "word" else _EXPECTED[parameter.kind]
        )
        near = _spelling_hint(value, parameter)
        faults.add(*span, f"{parameter.name} must be {wanted}, got {got}{near}")
    elif isinstance(found, str | bool) or _check_range(found, parameter, span, faults):
        return found
    return None


def _convert(value: Syntax, parameter: Parameter) -> Scalar | None:
    """Return the value as the parameter's type, or None if it is of another type."""
    match value, parameter.kind:
        case NumberSyntax(value=int(number)), "integer":
            return number
        case NumberSyntax(value=number), "real":
            return float(number) + 0.0  # -0.0 becomes 0.0, which is written otherwise
        case CallSyntax(name=name, arguments=None), "word" if name in parameter.words:
            return name
        case CallSyntax(name=name, arguments=None), "boolean":
            return _BOOLEANS.get(name)
        case _:
            return None


def _spelling_hint(value: Syntax, parameter: Parameter) -> str:
    """Return the hint for a misspelt word."""
    if isinstance(value, CallSyntax) and value.arguments is None and parameter.kind in ("word", "boolean"):
        return hint(value.name, parameter.words or tuple(_BOOLEANS))
    return ""


def _check_range(number: float, parameter: Parameter, span: tuple[int, int], faults: FaultCollector) -> bool:
    low, high = parameter.low, parameter.high
    if low is not None and number < low:
        faults.add(*span, f"{parameter.name} must be at least {low}, got {number}")
    elif high is not None and number > high:
        faults.add(*span, f"{parameter.name} must be at most {high}, got {number}")
    else:
        return True
    return False
