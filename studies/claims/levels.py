"""Levels and sets of levels as a claim writes them, with variables put in.

With c standing for `conv(k=3)`, `sa + c` is the level `sa + conv(k=3)`, and `4 * (c >> ff(8))` is what it
reads as: a recipe of several parts is put in with parentheses. A level that is unknown has its caret where it
is written, which for a variable is the set that it goes through.
"""

from __future__ import annotations

import re
from contextlib import suppress

from ...grammar import RecipeError, lookup
from ..faults import nearest
from ..labels import level_text
from ..settings import Level, read_recipe
from .context import Bindings, Bound, Context
from .scope import alike
from .syntax import Call, LevelText, Loop, Set

MOST = 1000
"""A claim that goes through more combinations of levels, or makes more comparisons, is refused."""

_MOST_ROUNDS = 10 * MOST
_OPERATOR = re.compile(r"[+*>]")


def written(context: Context, level: LevelText, bound: Bindings) -> Bound:
    """What a level says with the variables in it put in; an argument's name, `k` in `conv(k=20)`, is none."""
    tokens = level.tokens
    if len(tokens) == 1:
        known = bound.get(level.text) if tokens[0].kind == "name" else None
        return known or Bound(start=level.start, end=level.end, text=level.text)
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
    return Bound(start=level.start, end=level.end, text=text)


def level_of(context: Context, factor: str, level: LevelText, bound: Bindings) -> Level | None:
    """The level of a factor that is meant; None if there is none, which is noted unless it may be absent."""
    found = written(context, level, bound)
    known = context.scope.level(factor, found.text)
    if known is None and factor not in context.scope.changed:
        levels = map(level_text, context.scope.factors[factor])
        message = f"unknown level '{found.text}' of {factor}{nearest(found.text, levels)}"
        context.note(found.start, found.end, message)
    return known


def members(context: Context, these: Set, bound: Bindings) -> tuple[Bound, ...]:
    """The levels of a set in its order, those after `except` left out.

    An unknown factor, and an exception that is not there, are noted; so is a set of which nothing is left.
    """
    listed = tuple(written(context, level, bound) for level in these.levels)
    factor = these.factor
    if factor is not None:
        levels = context.scope.factors.get(factor.text)
        if levels is None:
            hint = nearest(factor.text, context.scope.factors)
            context.note(factor.start, factor.end, f"unknown factor '{factor.text}'{hint}")
            return ()
        listed = tuple(Bound(start=factor.start, end=factor.end, text=level_text(level)) for level in levels)
    less = [written(context, level, bound) for level in these.less]
    for one in less:
        if not any(alike(one.text, other.text) for other in listed):
            known = nearest(one.text, (other.text for other in listed))
            if factor is None or factor.text not in context.scope.changed:
                context.note(one.start, one.end, f"'{one.text}' is not among these levels{known}")
    kept = tuple(one for one in listed if not any(alike(one.text, other.text) for other in less))
    if less and not kept:
        context.lack(these.start, these.end, "no level is left")
    return kept


def bindings(context: Context, call: Call, bound: Bindings) -> list[Bindings]:
    """What the variables stand for in each round of a call's loops, the last varying fastest.

    A set may speak of the variables before it. A call without loops has one round.
    """
    found: list[Bindings] = [bound]
    for loop in call.loops:
        _check(context, call, loop)
        found = [
            {**each, loop.variable.text: level}
            for each in found
            for level in members(context, loop.over, each)
        ]
        if len(found) > MOST:
            message = f"expected at most {MOST:,} combinations of levels, got {len(found):,}"
            context.note(loop.variable.start, loop.over.end, message)
            return []
    context.rounds += len(found)
    if context.rounds > _MOST_ROUNDS:
        context.note(call.start, call.end, f"expected at most {_MOST_ROUNDS:,} rounds of all loops, got more")
        return []
    return found


def _check(context: Context, call: Call, loop: Loop) -> None:
    """Note a variable whose name says something else, and one that is not used."""
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
        context.note(loop.variable.start, loop.variable.end, message)
    elif len(re.findall(rf"\b{re.escape(name)}\b", context.faults.text[call.start : call.end])) < 2:
        context.note(loop.variable.start, loop.variable.end, f"nothing uses '{name}'")
