"""Arguments brought together with the parameters that they are for, as Python binds a call."""

from __future__ import annotations

from collections.abc import Sequence

from .faults import Faults, hint
from .syntax import Argument, Call
from .vocabulary import REQUIRED, Parameter


def bind(call: Call, parameters: Sequence[Parameter], faults: Faults) -> list[tuple[Parameter, Argument]]:
    """Each argument with its parameter, in declared order; arguments without a parameter are faults."""
    bound: dict[str, tuple[Parameter, Argument]] = {}
    by_name = {parameter.name: parameter for parameter in parameters}
    named = False
    for place, argument in enumerate(call.arguments or ()):
        if argument.name is None:
            parameter = _by_position(call, argument, place, named, parameters, faults)
        else:
            named = True
            parameter = by_name.get(argument.name)
            if parameter is None:
                message = f"{call.name} has no parameter '{faults.quote(argument.start, argument.name_end)}'"
                near = hint(argument.name, list(by_name)) or _all_of(list(by_name))
                faults.add(argument.start, argument.name_end, message + near)
        if parameter is None:
            continue
        if parameter.name in bound:
            faults.add(argument.start, argument.end, f"{parameter.name} is given twice")
        else:
            bound[parameter.name] = (parameter, argument)
    return [bound[parameter.name] for parameter in parameters if parameter.name in bound]


def bind_guessed(call: Call, parameters: Sequence[Parameter]) -> list[tuple[Parameter, Argument]]:
    """The arguments whose names fit, for a block that is only guessed: nothing else is held against it."""
    by_name = {parameter.name: parameter for parameter in parameters}
    arguments = call.arguments or ()
    return [(by_name[argument.name], argument) for argument in arguments if argument.name in by_name]


def require(call: Call, parameters: Sequence[Parameter], given: set[str], faults: Faults) -> bool:
    """Whether every parameter without a default is given; if not, a fault that names those missing."""
    missing = [p.name for p in parameters if p.default is REQUIRED and p.name not in given]
    if missing:
        faults.add(call.start, call.name_end, f"{call.name} needs {' and '.join(missing)}", call.end)
    return not missing


def _by_position(
    call: Call, argument: Argument, place: int, named: bool, parameters: Sequence[Parameter], faults: Faults
) -> Parameter | None:
    if named:
        faults.add(argument.start, argument.end, "a value without a name stands before those with one")
    elif place < len(parameters):
        return parameters[place]
    elif place == len(parameters):
        most = f"at most {len(parameters)} {'value' if len(parameters) == 1 else 'values'}"
        count = len(call.arguments or ())
        faults.add(
            argument.start,
            argument.end,
            f"{call.name} takes {most if parameters else 'no values'}, got {count}",
        )
    return None


def _all_of(known: list[str]) -> str:
    return f"; it has {', '.join(known)}" if known else "; it has none"
