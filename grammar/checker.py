"""Checks of a recipe against the vocabulary, which holds the known blocks and their parameters.

The checks are of names, arguments, ranges, the roles of blocks, and the number of blocks. Every part is
checked even if another part is wrong, so that one run reports all faults.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, product

from ..errors import FaultCollector, hint
from ..plugins import broken_plugins
from .nodes import (
    BlockNode,
    ChoiceDimension,
    Dimension,
    HoleNode,
    IntegerDimension,
    Node,
    RealDimension,
    RepeatNode,
    Scalar,
    TiedNode,
    Value,
    count_blocks,
    make_series,
    make_sum,
    walk,
)
from .parser import (
    ArgumentSyntax,
    CallSyntax,
    ErrorSyntax,
    HoleSyntax,
    NumberSyntax,
    OperationSyntax,
    Syntax,
)
from .vocabulary.spec import (
    NOT_BLOCKS,
    OTHER_LENGTH,
    REQUIRED,
    RESERVED_WORDS,
    VECTOR,
    Parameter,
    Spec,
    block_with_word,
    find_mismatch,
    is_positionwise,
    lookup,
    nearest_block,
    output_kind,
    registered_names,
    spec_of,
)


def bind(
    call: CallSyntax, parameters: Sequence[Parameter], faults: FaultCollector, *, takes_others: bool = False
) -> list[tuple[Parameter, ArgumentSyntax]]:
    """Pair each argument of a call with its parameter.

    The pairs are in the order of `parameters`. An argument without a parameter is reported in `faults`. With
    `takes_others`, an argument with an unknown name gets a new parameter of kind "any". New parameters come
    last, in alphabetical order.
    """
    bound: dict[str, tuple[Parameter, ArgumentSyntax]] = {}
    known = {parameter.name: parameter for parameter in parameters}
    if takes_others:
        others = {argument.name for argument in call.arguments or () if argument.name} - known.keys()
        known |= {name: Parameter(name=name, kind="any", meaning="of the layer") for name in sorted(others)}
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
    return [bound[name] for name in known if name in bound]


def check_complete(
    call: CallSyntax,
    parameters: Sequence[Parameter],
    bound: Sequence[tuple[Parameter, ArgumentSyntax]],
    faults: FaultCollector,
) -> bool:
    """Return whether all arguments of a call have a parameter and no required argument is missing.

    `bound` are the pairs that `bind` returned. Missing arguments are reported, unless a faulty argument can
    be meant for them.
    """
    given = {parameter.name for parameter, _ in bound}
    missing = [p.name for p in parameters if p.default is REQUIRED and p.name not in given]
    starts = {argument.start for _, argument in bound}
    astray = [argument for argument in call.arguments or () if argument.start not in starts]
    if missing and not astray:
        own = [written_out(each, faults) for each in call.arguments or ()]
        form = ", ".join([*own, *(f"{name}=…" for name in missing)])
        message = f"{call.name} needs {' and '.join(missing)}, as in {call.name}({form})"
        faults.add(call.start, call.name_end, message, call.end)
    return not missing and not astray


_LONGEST_REPAIR = 200
"""The number of characters up to which a repair has a part in full."""


def written_out(piece: Syntax | ArgumentSyntax, faults: FaultCollector, *, grouped: bool = False) -> str:
    """Return a piece of a recipe as its author wrote it, for a repair that can be copied.

    If `grouped`, several parts are put in parentheses.
    """
    text = faults.text[piece.start : piece.end].strip()
    if len(text) > _LONGEST_REPAIR or not text.isprintable():
        text = faults.quote(piece.start, piece.end)
    return f"({text})" if grouped and isinstance(piece, OperationSyntax) else text


def _count_and_part(syntax: Syntax, faults: FaultCollector) -> list[str]:
    """Return the two arguments that `each` needs, given its only argument: a repeat, or a part."""
    if isinstance(syntax, OperationSyntax) and syntax.operator == "*" and len(syntax.operands) == 2:
        return [written_out(each, faults) for each in syntax.operands]
    return ["4", written_out(syntax, faults)]


def _find_by_position(
    call: CallSyntax, place: int, parameters: Sequence[Parameter], faults: FaultCollector
) -> Parameter | None:
    """Return the parameter of the unnamed argument at index `place` of a call; None if there is none.

    Of several arguments without a parameter, only the first is reported.
    """
    arguments = call.arguments or ()
    argument, count = arguments[place], len(parameters)
    if place > count or isinstance(argument.value, ErrorSyntax):
        return None
    if any(before.name is not None for before in arguments[:place]):
        if isinstance(arguments[place - 1].value, ErrorSyntax):
            return None
        faults.add(argument.start, argument.end, "values without names must come before those with names")
        return None
    if place < count:
        return parameters[place]
    most = f"at most {count} {'value' if count == 1 else 'values'}" if count else "no values"
    faults.add(argument.start, argument.end, f"{call.name} takes {most}, got {len(arguments)}")
    return None


NUMBER_FORMS = ("integer", "real")
"""The functions of the recipe language that stand for a number from a range."""

_BOOLEANS = {"true": True, "false": False}
_EXPECTED = {"integer": "a whole number", "real": "a number", "boolean": "true or false", "name": "a name"}


def parse_untyped_scalar(value: Syntax) -> Scalar | None:
    """Return an argument's value if it is a number, a word or a boolean, else None.

    The type of its parameter is not known. None is also returned for the name of a block.
    """
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
    """Convert an argument's value to the number, word or boolean that a parameter takes.

    If the type or the size of the value does not fit the parameter, report a fault and return None.
    """
    found, kind, name = _convert(value, parameter), parameter.kind, parameter.name
    if found is None:
        near, got = "", faults.quote(value.start, value.end)
        if isinstance(value, CallSyntax) and value.arguments is None and kind in ("word", "boolean"):
            is_flag = kind == "boolean" and value.name == name  # as in real(1, 2, log)
            near = (
                f"; write {name}=true" if is_flag else hint(value.name, parameter.words or tuple(_BOOLEANS))
            )
        elif isinstance(value, CallSyntax) and kind in NUMBER_FORMS:
            near = _number_hint(value, kind)
        wanted = f"one of {', '.join(parameter.words)}" if kind == "word" else _EXPECTED[kind]
        faults.add(*span, f"{name} must be {wanted}, got {got}{near}")
    elif isinstance(found, str | bool):
        return found
    elif parameter.low is not None and found < parameter.low:
        faults.add(*span, f"{name} must be at least {parameter.low}, got {found}")
    elif parameter.high is not None and found > parameter.high:
        faults.add(*span, f"{name} must be at most {parameter.high}, got {found}{parameter.advice}")
    else:
        return found
    return None


def _misplaced_word(value: Syntax, parameter: Parameter, parameters: Sequence[Parameter]) -> str:
    """Return where a word belongs that another parameter of the block takes, as in sa(rope); "" if none."""
    if not isinstance(value, CallSyntax) or value.arguments is not None or parameter.kind in ("name", "any"):
        return ""
    if value.name in parameter.words or parameter.kind == "recipe":
        return ""
    owner = next((one.name for one in parameters if value.name in one.words), None)
    return f"{value.name} is a value of {owner}: write {owner}={value.name}" if owner else ""


def _number_hint(call: CallSyntax, kind: str) -> str:
    """Return a hint if a call is a number as in another language, or if a word should be a hole."""
    if call.name == "range":
        return f"; a range is {kind}(lo, hi)"
    parameters = (one for name in registered_names() for one in spec_of(name).parameters)
    known = {
        *RESERVED_WORDS,
        *NOT_BLOCKS,
        *registered_names(),
        *(word for one in parameters for word in one.words),
    }
    return "" if call.name in known or call.arguments is not None else f"; a hole is {{{call.name}}}"


def _convert(value: Syntax, parameter: Parameter) -> Scalar | None:
    match value, parameter.kind:
        case NumberSyntax(value=int(number)), "integer":
            return number
        case NumberSyntax(value=number), "real":
            return float(number) + 0.0  # -0.0 becomes 0.0: the two are equal but are written differently
        case CallSyntax(name=name, arguments=None), "word" if name in parameter.words:
            return name
        case CallSyntax(name=name, arguments=None), "name":
            return name
        case CallSyntax(name=name, arguments=None), "boolean":
            return _BOOLEANS.get(name)
        case _:
            return None


_STEP = Parameter(name="step", kind="integer", default=1, low=1, meaning="distance of neighbouring values")
_LOG = Parameter(name="log", kind="boolean", default=False, meaning="sample the logarithm evenly")


def parse_range(
    call: CallSyntax, parameter: Parameter, faults: FaultCollector
) -> IntegerDimension | RealDimension | None:
    """Return the search dimension that `integer(lo, hi, step=, log=)` or `real(lo, hi, log=)` describes.

    Report a range that is wrong or exceeds the parameter's bounds, and return None.
    """
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


def _is_valid_range(call: CallSyntax, found: dict[str, Scalar | None], faults: FaultCollector) -> bool:
    low, high = found["lo"], found["hi"]
    assert isinstance(low, int | float)
    assert isinstance(high, int | float)
    if low > high:
        message = f"lo must not be above hi, got {low} and {high}"
    elif found.get("log") and low <= 0:
        message = f"lo must be above 0 where log=true, got {low}"
    elif found.get("log") and found.get("step", 1) != 1:
        message = "step and log cannot be combined"
    else:
        return True
    faults.add(call.start, call.end, message, call.end)
    return False


MAX_BLOCKS = 10_000
"""The maximum number of blocks in a model with all repeats written out."""

MAX_COMBINATIONS = 10_000
"""The maximum number of combinations of a block's arguments that are tested for conflicts."""

_Span = tuple[int, int]

_BODY = Parameter(name="recipe", kind="recipe", meaning="a part of a recipe")
_ANY = Parameter(name="a value", kind="any", meaning="the options of a search dimension")
_COUNT = Parameter(name="a count", kind="integer", low=1, high=MAX_BLOCKS, meaning="copies of a repeat")


def check_recipe(syntax: Syntax, faults: FaultCollector) -> Node | None:
    """Return the tree of the recipe. If the text is wrong, report all faults and return None."""
    node = _Checker(faults).node(syntax)
    if node is not None and not faults and (count := count_blocks(node)) > MAX_BLOCKS:
        message = f"expected at most {MAX_BLOCKS} blocks after expanding all repeats, got {count:.9g}"
        faults.add(syntax.start, syntax.end, message)
    return None if faults else node


def check_dimension(syntax: Syntax, faults: FaultCollector) -> Dimension | None:
    """Return the search dimension that a syntax tree describes, such as `integer(3, 40)`.

    The parameter that it will fill is not known yet, so its bounds are not checked. Report a wrong dimension
    and return None.
    """
    found = _Checker(faults).value(syntax, _ANY, (syntax.start, syntax.end))
    if isinstance(found, Dimension):
        return None if faults else found
    if not faults:
        got = faults.quote(syntax.start, syntax.end)
        faults.add(syntax.start, syntax.end, f"expected integer(…), real(…) or choice(…), got {got}")
    return None


def find_conflict(spec: Spec, block: BlockNode) -> str | None:
    """Return a message if a block's arguments contradict each other, else None.

    Arguments that are search dimensions are tested with several of their values.
    """
    if spec.check is None:
        return None
    settings = spec.settings(block)
    values = [_representative_values(value) for value in settings.values()]  # none for an open hole
    ways = islice(product(*values), MAX_COMBINATIONS)
    found = (spec.check(dict(zip(settings, way, strict=True))) for way in ways)
    return next((message for message in found if message is not None), None)


def _representative_values(value: Value) -> list[Value]:
    """Return the values that `find_conflict` tests: all options, both ends of a range.

    A whole-number range also gives its second value, and a hole no value.
    """
    match value:
        case ChoiceDimension():
            return [one for option in value.options for one in _representative_values(option)]
        case IntegerDimension():
            last = value.high - (value.high - value.low) % value.step
            return [value.low, min(value.low + value.step, last), last]
        case RealDimension():
            return [value.low, value.high]
        case HoleNode():
            return []
        case _:
            return [value]


class _Checker:
    """Converter of one recipe's syntax tree to checked nodes.

    Methods report the faults that they find, and return None for a wrong part, which is not reported again.
    """

    def __init__(self, faults: FaultCollector) -> None:
        self._faults = faults
        self._written_out = 0  # parts expanded from an `each`

    def node(self, syntax: Syntax) -> Node | None:  # noqa: PLR0911 -- one return for each kind of syntax
        if self._faults.is_full:
            return None
        match syntax:
            case OperationSyntax(operator="*"):
                return self._repeat(syntax)
            case OperationSyntax():
                return self._operation(syntax)
            case CallSyntax(name="tied"):
                return self._tied(syntax)
            case CallSyntax(name="each"):
                return self._each(syntax)
            case CallSyntax(name="choice"):
                return self._choice(syntax, _BODY)
            case CallSyntax():
                return self._block(syntax)
            case HoleSyntax():
                return HoleNode(syntax.name)
            case NumberSyntax():
                got = self._faults.quote(syntax.start, syntax.end)
                self._report(syntax, f"expected a block, got {got}")
            case ErrorSyntax():
                for part in syntax.parts:
                    if not isinstance(part, NumberSyntax):
                        self.node(part)
        return None

    def value(self, syntax: Syntax, parameter: Parameter, span: _Span) -> Value | None:  # noqa: PLR0911 -- as above
        """Return the value of an argument: a value of its type, a hole, or a search dimension."""
        kind = parameter.kind
        match syntax:
            case ErrorSyntax():
                return None
            case HoleSyntax():
                return HoleNode(syntax.name)
            case CallSyntax(name="choice"):
                return self._choice(syntax, parameter)
            case CallSyntax(name="integer" | "real") if kind in ("integer", "real", "any"):
                return parse_range(syntax, parameter, self._faults)
            case OperationSyntax(operator="+" | "*") if kind not in ("recipe", "any"):
                self._report(syntax, f"{parameter.name} takes one value; recipes have no arithmetic")
                return None
        plain = parse_untyped_scalar(syntax) if kind == "any" else None
        if plain is None and kind in ("recipe", "any"):
            return self.node(syntax)
        if plain is not None:
            return plain
        return parse_scalar(syntax, parameter, span, self._faults)

    def _operation(self, syntax: OperationSyntax) -> Node | None:
        parts = tuple(self.node(operand) for operand in syntax.operands)
        wholes = [self._report_whole_model(*pair) for pair in zip(syntax.operands, parts, strict=True)]
        if any(wholes):
            return None
        if syntax.operator == "+":
            self._check_same_output(
                syntax.operands,
                parts,
                "all parts of a sum need the same kind of output",
                ": put a pool after the sum",
            )
        else:
            self._check_pools(syntax.operands, parts)
        checked = [part for part in parts if part is not None]
        if len(checked) < len(parts):
            return None
        return make_sum(checked) if syntax.operator == "+" else make_series(checked)

    def _report_whole_model(self, operand: Syntax, part: Node | None) -> bool:
        """Return whether an operand is a whole model, such as `seq2seq`; report it."""
        if part is None or output_kind(part) != OTHER_LENGTH:
            return False
        what = self._faults.quote(operand.start, operand.end)
        self._report(
            operand, f"{what} is a whole model with source and target: no other recipe can contain it"
        )
        return True

    def _check_pools(self, operands: tuple[Syntax, ...], parts: tuple[Node | None, ...]) -> None:
        pool: Syntax | None = None
        for operand, part in zip(operands, parts, strict=True):
            if pool is not None and part is not None and not is_positionwise(part):
                what, next_one = (self._faults.quote(one.start, one.end) for one in (pool, operand))
                law = "only channel blocks, such as ff, may follow a pool"
                after = f"the next {next_one}" if next_one == what else next_one
                self._report(pool, f"{what} gives a vector, but {after} needs a sequence: {law}")
                pool = None
            if part is not None and output_kind(part) == VECTOR:
                pool = operand

    def _check_same_output(
        self, operands: tuple[Syntax, ...], parts: tuple[Value | None, ...], rule: str, advice: str = ""
    ) -> None:
        """Report the first two parts with different kinds of output, by the text `rule`."""
        odd = find_mismatch(parts)
        if odd is None:
            return
        quote = self._faults.quote
        sides = [
            f"{quote(operands[place].start, operands[place].end)} gives {output_kind(part)}"
            for place in odd
            if (part := parts[place]) is not None
        ]
        self._report(operands[odd[1]], f"{rule}, but {' and '.join(sides)}{advice}")

    def _repeat(self, syntax: OperationSyntax) -> Node | None:
        first, *others = syntax.operands
        counts = isinstance(first, NumberSyntax | HoleSyntax | ErrorSyntax) or (
            isinstance(first, CallSyntax) and first.name in (*NUMBER_FORMS, "choice")
        )
        if not counts or len(others) > 1 or isinstance(others[0], NumberSyntax):
            repair = self._as_repeats(syntax)
            example = f": write {repair}" if repair else ", such as 4 * sa"
            self._report(syntax, f"a repeat is count * part{example}")
            return None
        (last,) = others
        if isinstance(last, CallSyntax) and last.name == "tied":
            body = self._tied(last, count=written_out(first, self._faults))
        else:
            body = self.node(last)
        count = self.value(first, _COUNT, (first.start, first.end))
        if count is None or body is None or self._report_whole_model(last, body):
            return None
        if self._report_repeated_pool(last, body):
            return None
        assert isinstance(count, int | HoleNode | IntegerDimension | ChoiceDimension)
        return RepeatNode(count, body)

    def _as_repeats(self, syntax: OperationSyntax) -> str | None:
        """Return a product of counts and one part as repeats, such as `2 * (3 * sa)`; None for another."""
        counts = [
            each
            for each in syntax.operands
            if isinstance(each, NumberSyntax | HoleSyntax)
            or (isinstance(each, CallSyntax) and each.name in NUMBER_FORMS)
        ]
        parts = [each for each in syntax.operands if each not in counts]
        if not parts and isinstance(counts[-1], HoleSyntax):
            parts = [counts.pop()]
        if len(parts) != 1 or not counts or isinstance(parts[0], ErrorSyntax):
            return None
        *outer, inner = (written_out(each, self._faults) for each in counts)
        form = f"{inner} * {written_out(parts[0], self._faults, grouped=True)}"
        for count in reversed(outer):
            form = f"{count} * ({form})"
        return form

    def _report_repeated_pool(self, part: Syntax, body: Node) -> bool:
        """Return whether a repeated part outputs a vector; report it."""
        if output_kind(body) != VECTOR:
            return False
        what = self._faults.quote(part.start, part.end)
        self._report(
            part, f"{what} gives a vector, but its next copy needs a sequence: a pool cannot be repeated"
        )
        return True

    def _each(self, syntax: CallSyntax) -> Node | None:
        arguments = [*(syntax.arguments or ())]
        if len(arguments) != 2 or any(argument.name is not None for argument in arguments):
            own = [written_out(argument.value, self._faults) for argument in arguments]
            if len(own) == 1:
                own = _count_and_part(arguments[0].value, self._faults)
            form = ", ".join(own) if len(own) == 2 else "4, choice(sa, conv(k=20))"
            self._report(syntax, f"each takes a count and a part, without names, as in each({form})")
        if len(arguments) != 2:
            return None
        first, last = (argument.value for argument in arguments)
        count = None
        if isinstance(first, NumberSyntax):
            count = parse_scalar(first, _COUNT, (first.start, first.end), self._faults)
        elif not isinstance(first, ErrorSyntax):
            part = written_out(last, self._faults)
            options = f"for several depths write choice(each(2, {part}), each(3, {part}))"
            self._report(first, f"each needs a whole number as its count; {options}")
        body = self.node(last)
        if not isinstance(count, int) or body is None or self._report_whole_model(last, body):
            return None
        if count > 1 and self._report_repeated_pool(last, body):
            return None
        before = self._written_out
        self._written_out += count * sum(1 for _ in walk(body))
        if self._written_out > MAX_BLOCKS:
            if before <= MAX_BLOCKS:  # reported once, at the part that exceeds the limit
                got = f"{self._written_out:.9g}"
                self._report(
                    syntax, f"expected at most {MAX_BLOCKS} parts after expanding each(…), got {got}"
                )
            return None
        return make_series([body] * count) if count > 1 else body

    def _tied(self, syntax: CallSyntax, count: str | None = None) -> Node | None:
        """Check tied copies; `count` is the number before them, which may be meant for their repeat."""
        arguments = [argument.value for argument in syntax.arguments or () if argument.name is None]
        if len(arguments) != 1 or len(arguments) != len(syntax.arguments or ()):
            form = "4 * sa"
            if len(arguments) == 2 and isinstance(arguments[0], NumberSyntax | HoleSyntax):
                first, last = arguments
                form = f"{written_out(first, self._faults)} * {written_out(last, self._faults, grouped=True)}"
            self._report(syntax, f"tied takes one repeat, for example tied({form})")
            return None
        body = self.node(arguments[0])
        if isinstance(body, RepeatNode):
            return TiedNode(body)
        if body is not None:
            form = f"tied({count or 4} * {written_out(arguments[0], self._faults, grouped=True)})"
            example = f": write {form}" if count else f", for example {form}"
            self._report(arguments[0], f"expected a repeat inside tied{example}")
        return None

    def _choice(self, syntax: CallSyntax, parameter: Parameter) -> ChoiceDimension | None:
        if not syntax.arguments:
            self._report(syntax, "choice needs options, for example choice(sa, conv(k=20))")
            return None
        options: list[Value | None] = []
        seen: set[Value] = set()
        for argument in syntax.arguments:
            if argument.name is not None:
                message = f"choice takes its options by position, without names, got {argument.name}="
                self._faults.add(argument.start, argument.name_end, message)
            option = self.value(argument.value, parameter, (argument.value.start, argument.value.end))
            if option in seen:
                self._report(argument.value, "this option is listed twice")
            if option is not None:
                seen.add(option)
            options.append(option)
        if parameter.kind == "recipe":
            values = tuple(argument.value for argument in syntax.arguments)
            self._check_same_output(
                values, tuple(options), "all options of a choice need the same kind of output"
            )
        checked = tuple(option for option in options if option is not None)
        return ChoiceDimension(checked) if len(checked) == len(options) else None

    def _block(self, call: CallSyntax) -> BlockNode | None:
        if call.name in NUMBER_FORMS:
            self._report(call, f"{call.name} can only replace a number: a count, or a parameter's value")
            return None
        spec = lookup(call.name)
        if spec is None:
            self._report_unknown(call)
            return None
        bound = bind(call, spec.parameters, self._faults, takes_others=spec.package is not None)
        complete = check_complete(call, spec.parameters, bound, self._faults)
        arguments: list[tuple[str, Value]] = []
        for parameter, argument in bound:
            if not argument.name and (advice := _misplaced_word(argument.value, parameter, spec.parameters)):
                self._faults.add(argument.start, argument.end, advice)
                complete = False
                continue
            value = self.value(argument.value, parameter, (argument.start, argument.end))
            complete = complete and value is not None
            if value is not None and value != parameter.default:
                arguments.append((parameter.name, value))
        if not complete:
            return None
        block = BlockNode(call.name, tuple(arguments))
        message = find_conflict(spec, block)
        if message is not None:
            self._report(call, message)
        return block

    def _report_unknown(self, call: CallSyntax) -> None:
        """Report an unknown block, and check its arguments as if it were the most similar one."""
        what = self._faults.quote(call.start, call.name_end)
        broken = next((each for each in broken_plugins() if each.entry == call.name), None)
        if broken is not None:
            self._faults.add(call.start, call.name_end, f"the block '{what}' cannot be used: {broken}")
            return
        near = nearest_block(call.name)
        said = f"; nearest: {near}" if near else ""
        if example := block_with_word(call.name):
            near, said = None, f"; it is the value of an argument, as in {example}"
        if (advice := NOT_BLOCKS.get(call.name.lower())) is not None:
            near, said = None, f"; {advice}"
        self._faults.add(call.start, call.name_end, f"unknown block '{what}'{said}")
        spec = lookup(near) if near else None
        by_name = {parameter.name: parameter for parameter in spec.parameters} if spec else {}
        for argument in call.arguments or ():
            if argument.name in by_name:
                self.value(argument.value, by_name[argument.name], (argument.start, argument.end))

    def _report(self, syntax: Syntax, message: str) -> None:
        self._faults.add(syntax.start, syntax.end, message)
