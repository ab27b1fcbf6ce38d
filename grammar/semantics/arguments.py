"""Arguments: bound to parameters as Python binds a call, and checked as numbers, words, booleans or ranges.

A whole number will do for a real parameter, and becomes a real one; nothing else is converted. `integer` and
`real` stand only where a number may.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...diagnostics import FaultCollector, hint, nearest
from ..nodes import IntegerDimension, RealDimension, Scalar
from ..syntax.parser import (
    ArgumentSyntax,
    CallSyntax,
    ErrorSyntax,
    HoleSyntax,
    NumberSyntax,
    OperationSyntax,
    Syntax,
)
from ..vocabulary.registry import RESERVED_WORDS, lookup
from ..vocabulary.spec import REQUIRED, Parameter


def bind(
    call: CallSyntax, parameters: Sequence[Parameter], faults: FaultCollector
) -> list[tuple[Parameter, ArgumentSyntax]]:
    """Each argument with its parameter, in declared order; arguments without a parameter are faults."""
    bound: dict[str, tuple[Parameter, ArgumentSyntax]] = {}
    known = {parameter.name: parameter for parameter in parameters}
    for place, argument in enumerate(call.arguments or ()):
        if argument.name is None:
            parameter = _find_by_position(call, place, parameters, faults)
        elif (parameter := known.get(argument.name)) is None:
            what = faults.quote(argument.start, argument.name_end)
            otherwise = f"; it has {', '.join(known)}" if known else "; it has none"
            message = f"{call.name} has no parameter '{what}'{hint(argument.name, list(known)) or otherwise}"
            faults.add(argument.start, argument.name_end, message)
        if parameter is not None and parameter.name in bound:
            faults.add(argument.start, argument.end, f"{parameter.name} is given twice")
        elif parameter is not None:
            bound[parameter.name] = (parameter, argument)
    return [bound[parameter.name] for parameter in parameters if parameter.name in bound]


def bind_known_names(
    call: CallSyntax, parameters: Sequence[Parameter]
) -> list[tuple[Parameter, ArgumentSyntax]]:
    """Return the arguments whose names fit a block that is only guessed; other arguments are no faults."""
    by_name = {parameter.name: parameter for parameter in parameters}
    arguments = call.arguments or ()
    return [(by_name[argument.name], argument) for argument in arguments if argument.name in by_name]


def check_complete(
    call: CallSyntax,
    parameters: Sequence[Parameter],
    bound: Sequence[tuple[Parameter, ArgumentSyntax]],
    faults: FaultCollector,
) -> bool:
    """Return whether every argument has a parameter, and every parameter without a default an argument.

    Missing arguments are faults, unless an argument with a fault already seems to be meant for them.
    """
    given = {parameter.name for parameter, _ in bound}
    missing = [p.name for p in parameters if p.default is REQUIRED and p.name not in given]
    starts = {argument.start for _, argument in bound}
    astray = [argument for argument in call.arguments or () if argument.start not in starts]
    if missing and not any(one.name is None or nearest(one.name, missing) for one in astray):
        faults.add(call.start, call.name_end, f"{call.name} needs {' and '.join(missing)}", call.end)
    return not missing and not astray


def _find_by_position(
    call: CallSyntax, place: int, parameters: Sequence[Parameter], faults: FaultCollector
) -> Parameter | None:
    """Return the parameter of a value without a name; of too many values only the first is a fault."""
    arguments = call.arguments or ()
    argument, count = arguments[place], len(parameters)
    if place > count or isinstance(argument.value, ErrorSyntax):
        return None
    if any(before.name is not None for before in arguments[:place]):
        if isinstance(arguments[place - 1].value, ErrorSyntax):
            return None
        faults.add(argument.start, argument.end, "a value without a name stands before those with one")
        return None
    if place < count:
        return parameters[place]
    most = f"at most {count} {'value' if count == 1 else 'values'}" if count else "no values"
    faults.add(argument.start, argument.end, f"{call.name} takes {most}, got {len(arguments)}")
    return None


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
    found, kind, name = _convert(value, parameter), parameter.kind, parameter.name
    if found is None:
        near, got = "", faults.quote(value.start, value.end)
        if isinstance(value, CallSyntax) and value.arguments is None and kind in ("word", "boolean"):
            near = hint(value.name, parameter.words or tuple(_BOOLEANS))
        wanted = f"one of {', '.join(parameter.words)}" if kind == "word" else _EXPECTED[kind]
        faults.add(*span, f"{name} must be {wanted}, got {got}{near}")
    elif isinstance(found, str | bool):
        return found
    elif parameter.low is not None and found < parameter.low:
        faults.add(*span, f"{name} must be at least {parameter.low}, got {found}")
    elif parameter.high is not None and found > parameter.high:
        faults.add(*span, f"{name} must be at most {parameter.high}, got {found}")
    else:
        return found
    return None


def _convert(value: Syntax, parameter: Parameter) -> Scalar | None:
    """Return the value as the parameter's type, or None if it has another type."""
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


NUMBER_FORMS = ("integer", "real")
"""The forms that stand for one number out of a range."""

_STEP = Parameter(name="step", kind="integer", default=1, low=1, meaning="distance of neighbouring values")
_LOG = Parameter(name="log", kind="boolean", default=False, meaning="sample the logarithm evenly")


def parse_range(
    call: CallSyntax, parameter: Parameter, faults: FaultCollector
) -> IntegerDimension | RealDimension | None:
    """`integer(lo, hi, step=, log=)` or `real(lo, hi, log=)`, both ends within the parameter's bounds."""
    if parameter.kind == "any":
        parameter = replace(parameter, kind="integer" if call.name == "integer" else "real")
    if call.name != parameter.kind:
        faults.add(
            call.start, call.name_end, f"{parameter.name} takes {parameter.kind}(lo, hi), got {call.name}"
        )
        return None
    ends = [replace(parameter, name=name, default=REQUIRED) for name in ("lo", "hi")]
    parameters = [*ends, _STEP, _LOG] if call.name == "integer" else [*ends, _LOG]
    bound = bind(call, parameters, faults)
    found: dict[str, Scalar | None] = {}
    for one, argument in bound:
        target = parameter if one.name in ("lo", "hi") else one  # a bound's message names what it bounds
        found[one.name] = parse_scalar(argument.value, target, (argument.start, argument.end), faults)
    complete = check_complete(call, parameters, bound, faults)
    if not complete or None in found.values() or not _is_valid_range(call, found, faults):
        return None
    log = bool(found.get("log", False))
    if call.name == "integer":
        return IntegerDimension(
            int(found["lo"] or 0), int(found["hi"] or 0), int(found.get("step") or 1), log
        )
    return RealDimension(float(found["lo"] or 0), float(found["hi"] or 0), log)


def is_malformed_repeat(repeat: OperationSyntax, faults: FaultCollector) -> bool:
    """Return whether `*` joins anything but a count on the left and a part on the right.

    It is reported as a fault.
    """
    first, *_, last = repeat.operands

    def text(place: int) -> str:
        return _operand(repeat.operands[place], faults)

    match repeat.operands:
        case (NumberSyntax(value=int(one)), NumberSyntax(value=int(two)), _):
            message = f"a repeat takes one count: {one * two} * {text(2)}"
        case (_, _, _, *_):
            message = "a repeat takes one count and one part, as in 4 * sa"
        case (NumberSyntax(), NumberSyntax()):
            faults.add(last.start, last.end, f"expected a block, got {text(1)}")
            return True
        case (_, NumberSyntax()):
            message = f"the count of a repeat comes first: {text(1)} * {text(0)}"
        case (
            NumberSyntax() | HoleSyntax() | ErrorSyntax() | CallSyntax(name="integer" | "real" | "choice"),
            _,
        ):
            return False
        case _:
            faults.add(first.start, first.end, f"expected a count before '*', got {text(0)}")
            return True
    faults.add(repeat.start, repeat.end, message)
    return True


def _operand(syntax: Syntax, faults: FaultCollector) -> str:
    """Return the text of an operand, in parentheses where the repeat that a message proposes needs them."""
    text = faults.quote(syntax.start, syntax.end)
    return f"({text})" if isinstance(syntax, OperationSyntax) else text


def _is_valid_range(call: CallSyntax, found: dict[str, Scalar | None], faults: FaultCollector) -> bool:
    low, high = found["lo"], found["hi"]
    assert isinstance(low, int | float)
    assert isinstance(high, int | float)
    if low > high:
        message = f"lo must not be above hi, got {low} and {high}"
    elif found.get("log") and low <= 0:
        message = f"lo must be above 0 where log=true, got {low}"
    elif found.get("log") and found.get("step", 1) != 1:
        message = "step and log exclude each other"
    else:
        return True
    faults.add(call.start, call.end, message, call.end)
    return False
