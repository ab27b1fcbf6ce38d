"""Arguments brought together with the parameters that they are for, as Python binds a call."""

from __future__ import annotations

from collections.abc import Sequence

from ...diagnostics import FaultCollector, hint, nearest
from ..syntax.syntax_tree import ArgumentSyntax, CallSyntax, ErrorSyntax
from ..vocabulary.spec import REQUIRED, Parameter


def bind(
    call: CallSyntax, parameters: Sequence[Parameter], faults: FaultCollector
) -> list[tuple[Parameter, ArgumentSyntax]]:
    """Each argument with its parameter, in declared order; arguments without a parameter are faults."""
    bound: dict[str, tuple[Parameter, ArgumentSyntax]] = {}
    for place, argument in enumerate(call.arguments or ()):
        find = _find_by_position if argument.name is None else _find_by_name
        parameter = find(call, place, parameters, faults)
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


def _find_by_name(
    call: CallSyntax, place: int, parameters: Sequence[Parameter], faults: FaultCollector
) -> Parameter | None:
    """Return the parameter that an argument names; an unknown name is a fault."""
    argument = (call.arguments or ())[place]
    known = {parameter.name: parameter for parameter in parameters}
    name = argument.name or ""
    if name not in known:
        what = faults.quote(argument.start, argument.name_end)
        otherwise = f"; it has {', '.join(known)}" if known else "; it has none"
        message = f"{call.name} has no parameter '{what}'{hint(name, list(known)) or otherwise}"
        faults.add(argument.start, argument.name_end, message)
    return known.get(name)
