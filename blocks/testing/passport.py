"""Passport of a block: a list of checks of its module, with their results."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from ...errors import ActivememError
from ...grammar import Role, configure, lookup, nodes, parse, render
from ...grammar.vocabulary.spec import REQUIRED, CostContext, block_code, spec_of
from . import conformance
from .fixtures import WIDTH, example_block, make_block, random_sequences, states_reach
from .plugin_checks import check_plugin_block
from .references import (
    ALL_LENGTHS_TO,
    GRADIENT_LENGTHS,
    LONGER_LENGTHS,
    has_reference,
    outputs_and_gradients_equal_the_reference,
    outputs_equal_the_reference,
    outputs_equal_the_reference_at_lengths,
)

_FAULTS = (AssertionError, ActivememError, ArithmeticError, AttributeError, LookupError, RuntimeError)
_FAULTS += (NotImplementedError, TypeError, ValueError)
"""What a wrong block may raise in a check."""


ResultT = TypeVar("ResultT")

_NO_REFERENCE = "skipped: no reference, which is the block's equation as plain loops"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check in a passport. `passed` is None if the check does not apply, or cannot be made."""

    name: str
    passed: bool | None
    finding: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Passport:
    """The results of all checks of a block. `recorded` says whether activemem's own tests made them."""

    block: str
    recorded: bool
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Return whether no check has failed."""
        return all(check.passed is not False for check in self.checks)


_RECORD = Path(__file__).with_name("passports.json")
"""The checks of every built-in block of one sequence, with small arguments; `docs/passports.py` writes it."""


def verify_block(text: str) -> Passport:
    """Return the recorded passport of a built-in block, or check a plug-in's block as `check_block` does.

    A record has small arguments, which the name of the block stands for. Raise ActivememError for a built-in
    block with other arguments, and for a text that is not one block of a sequence.
    """
    node, is_name = _read_block(text)
    if block_code(node.name) is not None:
        return check_block(text)
    record = json.loads(_RECORD.read_text(encoding="utf-8"))[node.name]
    if not is_name and render(node) != record["block"]:
        raise ActivememError(
            f"expected {node.name}, because the record of a built-in block is of {record['block']}, "
            f"got {render(node)}"
        )
    checks = tuple(Check(**check) for check in record["checks"])
    return Passport(block=record["block"], recorded=True, checks=checks)


def check_block(text: str) -> Passport:
    """Check a block against its reference, if one is registered, and its specification.

    A block's name without arguments gets small arguments; that of a plug-in's block is also checked with its
    default arguments, as before a training. Raise ActivememError for a text that is not one block of a
    sequence.
    """
    node, is_name = _read_block(text)
    text = render(node)
    shape = _suite("outputs", (conformance.shape_stays,), text, "")
    checks = _own_checks(node, text) if shape.passed else [shape]
    checks += _default_checks(node) if is_name and shape.passed else []
    return Passport(block=text, recorded=False, checks=tuple(checks))


def _read_block(text: str) -> tuple[nodes.BlockNode, bool]:
    """Return the block that a text names, and whether it is a name without arguments."""
    is_name = lookup(text) is not None
    recipe = parse(render(example_block(text)) if is_name else text)
    if not isinstance(recipe.root, nodes.BlockNode) or recipe.holes or recipe.dimensions:
        raise ActivememError(f"expected one block with all of its arguments, got {recipe.text}")
    node, spec = recipe.root, spec_of(recipe.root.name)
    if spec.role is Role.TRANSDUCER:
        expected = "expected a block that maps one sequence to another"
        raise ActivememError(f"{expected}, got the transducer {node.name}")
    if spec.package is not None:
        raise ActivememError(f"{recipe.text} is a layer of {spec.package}, so it has no other reference")
    return node, is_name


_NO_LEAK = (
    conformance.sequences_are_independent,
    conformance.future_is_hidden,
    conformance.padding_changes_nothing,
)
_REACH = (conformance.reach_is_as_stated, conformance.stack_reaches_as_analysed)
_COST = (conformance.flops_are_counted, conformance.training_memory_is_stated)
_INITIAL = (conformance.seed_decides, conformance.state_dict_restores)
_NAMED = (*_NO_LEAK, *_REACH, *_COST, *_INITIAL, *conformance.STEP_CHECKS, outputs_equal_the_reference)
_OTHERS = tuple(check for check in conformance.CHECKS if check not in _NAMED)


def _own_checks(node: nodes.BlockNode, text: str) -> list[Check]:
    reach = _reach(node, text)
    return [
        _compared("outputs", _outputs, node, text),
        _compared("gradients", _gradients, node, text),
        _steps(node, text),
        _suite("initial weights", _INITIAL, text, "drawn from the seed alone"),
        _suite("no leak", _NO_LEAK, text, "no output sees a later input, padding or another sequence"),
        reach,
        Check(name="cost", passed=None, finding=_UNMEASURED) if reach.passed is False else _cost(node, text),
        _suite("in training", _OTHERS, text, "in half precision, with dropout, in sums"),
    ]


def _default_checks(node: nodes.BlockNode) -> list[Check]:
    """Return the check of a plug-in's block with its default arguments; `node` has the other ones, too."""
    required = {each.name for each in spec_of(node.name).parameters if each.default is REQUIRED}
    default = nodes.BlockNode(node.name, tuple(each for each in node.arguments if each[0] in required))
    if default == node or block_code(node.name) is None:
        return []

    def run() -> tuple[bool | None, str]:
        if all(check_plugin_block(default, causal=causal) for causal in (True, False)):
            return True, "with its default arguments, nothing that a study refuses"
        return None, f"not checked: random outputs, or it cannot run on the CPU at width {WIDTH}"

    return [_check("defaults", run)]


_UNMEASURED = "not measured, because the stated reach is wrong"


def _check(name: str, run: Callable[[], tuple[bool | None, str]]) -> Check:
    try:
        passed, finding = run()
    except _FAULTS as error:
        lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        return Check(name=name, passed=False, finding=" ".join(lines[:2]))
    return Check(name=name, passed=passed, finding=finding)


def _suite(name: str, checks: Sequence[Callable[..., None]], text: str, finding: str) -> Check:
    """Run conformance checks for bidirectional and causal models; if all pass, the entry has `finding`."""

    def run() -> tuple[bool, str]:
        for check in checks:
            for causal in (False, True):
                _run(check, text, causal=causal)
        return True, finding

    return _check(name, run)


def _run(check: Callable[..., ResultT], *given: object, causal: bool) -> ResultT:
    """Run a check. An AssertionError then says which check failed, and in which model."""
    try:
        return check(*given, causal=causal)
    except AssertionError as error:
        model = "causal" if causal else "bidirectional"
        where = "".join(f", length {each}" for each in given[1:])
        name = check.__name__.replace("_", " ")
        raise AssertionError(f'"{name}" does not hold: {error} (in a {model} model{where})') from error


def _compared(name: str, run: Callable[[str], tuple[bool, str]], node: nodes.BlockNode, text: str) -> Check:
    if not has_reference(node.name):
        return Check(name=name, passed=None, finding=_NO_REFERENCE)
    return _check(name, partial(run, text))


def _outputs(text: str) -> tuple[bool, str]:
    for causal in (False, True):
        _run(outputs_equal_the_reference, text, causal=causal)
    run_at_lengths = partial(_run, outputs_equal_the_reference_at_lengths, text)
    most = max(run_at_lengths(causal=causal) for causal in (False, True))
    lengths = f"1 to {ALL_LENGTHS_TO}, {' and '.join(map(str, LONGER_LENGTHS))}"
    return True, f"equal to the slow reference at lengths {lengths}, within {most:.0e}"


def _gradients(text: str) -> tuple[bool, str]:
    most = max(
        _run(outputs_and_gradients_equal_the_reference, text, length, causal=causal)
        for length in GRADIENT_LENGTHS
        for causal in (False, True)
    )
    lengths = ", ".join(map(str, GRADIENT_LENGTHS))
    return True, f"equal to the slow reference at lengths {lengths}, within {most:.0e}"


def _steps(node: nodes.BlockNode, text: str) -> Check:
    if spec_of(node.name).role is Role.POOL:
        return Check(name="steps", passed=None, finding="a pool reads a whole sequence")

    def run() -> tuple[bool, str]:
        for check in conformance.STEP_CHECKS:
            _run(check, text, causal=True)
        block = make_block(node, causal=True)
        window = conformance.stated_cost(node, causal=True, length=40).window
        if not block.state_is_bounded:
            kept = block.context_length
            return True, "in pieces as in one pass" + ("; sees all of the past" if kept is None else "")
        _, state = block.step(random_sequences(1, 3), None)
        numbers = 0 if state is None else state.numel()
        assert numbers == window, f"expected a state of {window:,} numbers as stated, got {numbers:,}"
        return True, f"in pieces as in one pass; a state of {numbers:,} numbers, as stated"

    return _check("steps", run)


def _reach(node: nodes.BlockNode, text: str) -> Check:
    if not states_reach(text):
        return Check(name="reach", passed=None, finding="skipped: the block states no reach")
    spec = spec_of(node.name)
    configs = (configure(d_model=WIDTH, causal=causal) for causal in (False, True))
    sides = [spec.reach(spec.settings(node), CostContext(config=each, length=19)) for each in configs]
    words = " and ".join(f"{each.left:g} left, {each.right:g} right" for each in dict.fromkeys(sides))
    return _suite("reach", _REACH, text, words.replace("inf", "all"))


def _cost(node: nodes.BlockNode, text: str) -> Check:
    found = _suite("cost", _COST, text, "")
    if not found.passed:
        return found

    def run() -> tuple[bool, str]:
        cost = conformance.stated_cost(node, causal=True, length=40)
        counted = sum(each.numel() for each in make_block(node, causal=True).parameters())
        stated = cost.parameters + sum(cost.shared.values())
        assert counted == stated, f"expected {stated} parameters as stated, got {counted}"
        return True, f"{counted:,} parameters, {cost.flops:,} FLOPs at length 40, memory of a step"

    return _check("cost", run)
