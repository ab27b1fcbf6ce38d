"""Levels and sets of levels as a claim writes them, with variables substituted.

If c is `conv(k=3)`, `sa + c` is the level `sa + conv(k=3)`. A recipe of several parts is substituted in
parentheses. The caret of an unknown level is where it is written: for a variable, in the set of its loop.
"""

from __future__ import annotations

import re
from contextlib import suppress

from ...diagnostics import nearest_hint
from ...grammar import RecipeError, lookup
from ..schema.level_names import NamedLevels, level_text
from ..schema.settings import Level, read_recipe
from .context import Bindings, BoundLevel, ClaimContext
from .syntax_tree import ForClause, FunctionCall, LevelLiteral, LevelSet

MAX_COMBINATIONS = 1000
"""The most combinations of levels, or comparisons, that a claim may have."""

_MAX_ITERATIONS = 10 * MAX_COMBINATIONS
_OPERATOR = re.compile(r"[+*>]")


def substitute_variables(context: ClaimContext, level: LevelLiteral, bound: Bindings) -> BoundLevel:
    """Return the level with its variables substituted.

    The name of an argument, such as `k` in `conv(k=20)`, is no variable.
    """
    tokens = level.tokens
    if len(tokens) == 1:
        known = bound.get(level.text) if tokens[0].kind == "name" else None
        return known or BoundLevel(start=level.start, end=level.end, text=level.text)
    pieces, at = "", level.start
    for token, after in zip(tokens, (*tokens[1:], None), strict=True):
        named = after is not None and after.kind in ("=", "(")
        if token.kind == "name" and token.text in bound and not named:
            text = bound[token.text].text
            pieces += context.faults.text[at : token.start]
            pieces += f"({text})" if _OPERATOR.search(text) else text
            at = token.end
    text = " ".join((pieces + context.faults.text[at : level.end]).split())
    with suppress(RecipeError):  # not every level is a recipe
        text = read_recipe(text).text if text != level.text else text
    return BoundLevel(start=level.start, end=level.end, text=text)


def resolve_level(context: ClaimContext, factor: str, level: LevelLiteral, bound: Bindings) -> Level | None:
    """Return the level of a factor that is meant; report a fault and return None if there is none."""
    found = substitute_variables(context, level, bound)
    try:
        return context.scope.level(factor, found.text)
    except ValueError as error:
        context.report_error(found.start, found.end, str(error))
        return None


def resolve_level_set(context: ClaimContext, level_set: LevelSet, bound: Bindings) -> tuple[BoundLevel, ...]:
    """Return the levels of a set in its order, without those after `except`.

    Reports an unknown factor, an exception that is not in the set, and an empty result.
    """
    listed = tuple(substitute_variables(context, level, bound) for level in level_set.levels)
    factor = level_set.factor
    if factor is not None:
        levels = context.scope.factors.get(factor.text)
        if levels is None:
            hint = nearest_hint(factor.text, context.scope.factors)
            context.report_error(factor.start, factor.end, f"unknown factor '{factor.text}'{hint}")
            return ()
        listed = tuple(
            BoundLevel(start=factor.start, end=factor.end, text=level_text(level)) for level in levels
        )
    names = NamedLevels(dict.fromkeys(other.text for other in listed), "among those of the loop")
    less = set[Level]()
    for one in (substitute_variables(context, level, bound) for level in level_set.excluded):
        try:
            less.add(names.find(one.text))
        except ValueError as error:
            context.report_error(one.start, one.end, str(error))
    kept = tuple(one for one in listed if one.text not in less)
    if less and not kept:
        context.report_error(level_set.start, level_set.end, "no level is left")
    return kept


def loop_bindings(context: ClaimContext, call: FunctionCall, bound: Bindings) -> list[Bindings]:
    """Return the values of variables in each iteration of a call's loops, the last varying fastest.

    A set may use the variables before it. A call without loops has one iteration.
    """
    found: list[Bindings] = [bound]
    for loop in call.loops:
        _check_variable(context, call, loop)
        found = [
            {**each, loop.variable.text: level}
            for each in found
            for level in resolve_level_set(context, loop.iterates, each)
        ]
        if len(found) > MAX_COMBINATIONS:
            message = f"expected at most {MAX_COMBINATIONS:,} combinations of levels, got {len(found):,}"
            context.report_error(loop.variable.start, loop.iterates.end, message)
            return []
    context.num_iterations += len(found)
    if context.num_iterations > _MAX_ITERATIONS:
        context.report_error(
            call.start, call.end, f"expected at most {_MAX_ITERATIONS:,} rounds of all loops, got more"
        )
        return []
    return found


def _check_variable(context: ClaimContext, call: FunctionCall, loop: ForClause) -> None:
    """Note a variable whose name is taken, and one that is not used."""
    name, scope = loop.variable.text, context.scope
    owners = [factor for factor, levels in scope.factors.items() if name in map(level_text, levels)]
    taken = None
    if name in scope.metrics:
        taken = "a metric"
    elif owners:
        taken = f"a level of {owners[0]}"
    elif lookup(name) is not None:
        taken = "a block"
    if taken:
        message = f"'{name}' is {taken}; expected another name for the variable"
        context.report_error(loop.variable.start, loop.variable.end, message)
    elif len(re.findall(rf"\b{re.escape(name)}\b", context.faults.text[call.start : call.end])) < 2:
        context.report_error(loop.variable.start, loop.variable.end, f"nothing uses '{name}'")
