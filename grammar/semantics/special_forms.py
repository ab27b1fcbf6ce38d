"""The forms that are no blocks: `integer(…)`, `real(…)` and the places of a repeat's count.

`integer` and `real` stand only where a number may; `choice`, `each` and `tied` hold parts of a
recipe and are in `checks`.
"""

from __future__ import annotations

from dataclasses import replace

from ...diagnostics import FaultCollector
from ..nodes import IntegerDimension, RealDimension, Scalar
from ..syntax.syntax_tree import CallSyntax, ErrorSyntax, HoleSyntax, NumberSyntax, OperationSyntax, Syntax
from ..vocabulary.spec import REQUIRED, Parameter
from .arguments import bind, check_complete
from .scalars import parse_scalar

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
    """Return the text of an operand as it can stand in the repeat that a message proposes."""
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
