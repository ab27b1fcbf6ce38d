"""Which cells a quantity speaks of, by the levels that are named in its brackets.

Factors that are not named are left open. That is fine where only one cell has the levels that are: where the
others have one level, or follow from those named, as in a zip; in a design of one at a time they are as in
the baseline. The seed is never named: a quantity is a value for each seed, and is compared with another seed
by seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..factors import SEED
from ..faults import nearest
from ..labels import level_text
from ..settings import Level
from .context import Bindings, Context
from .levels import level_of, written
from .scope import Cell
from .statements import Absent, Constant, Number, Quantity
from .syntax import LevelText, Name


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The cells that a quantity speaks of, the numbers there, and the factors that were left open."""

    numbers: tuple[Number, ...]
    cells: tuple[Cell, ...]
    open: tuple[str, ...]


def one(context: Context, node: Name, bound: Bindings) -> Number | None:
    """The number that a name stands for: a variable's, or a metric's in one cell.

    None where it is wrong, or stands for several cells; the message says whose level is to be named.
    """
    if node.bare and node.word.text in bound:
        return _variable(context, node, bound)
    found = select(context, node, bound)
    if found is None or len(found.numbers) == 1:
        return found and found.numbers[0]
    ways = " and ".join(
        f"{factor} ({', '.join(map(level_text, levels))})"
        for factor, levels in context.scope.varying(found.cells).items()
    )
    message = f"'{node.word.text}' stands for {len(found.cells)} cells here; expected one level of {ways}"
    context.lack(node.word.start, node.word.end, message)
    return None


def select(context: Context, node: Name, bound: Bindings) -> Selection | None:
    """The cells that a metric is taken in; None where something is wrong with it, which is noted.

    Where an override has taken a level away there is no cell, and the one number is Absent.
    """
    metric = _metric(context, node, bound)
    named, absent, sound = dict[str, Level](), list[str](), metric is not None
    for factor, level in _selectors(context, node):
        known = level_of(context, factor, level, bound) if factor in context.scope.factors else None
        if known is not None:
            named[factor] = known
        elif factor in context.scope.changed:
            absent.append(f"{factor}={written(context, level, bound).text}")
        else:
            sound = False
    if not sound or metric is None:
        return None
    if absent:
        return Selection(numbers=(Absent(", ".join(absent)),), cells=(), open=())
    cells = context.scope.select(named)
    if not cells:
        return _nowhere(context, node, named)
    numbers = tuple(Quantity(metric, cell) for cell in cells)
    return Selection(numbers=numbers, cells=cells, open=tuple(context.scope.varying(cells)))


def _variable(context: Context, node: Name, bound: Bindings) -> Number | None:
    """A variable as a number."""
    text = bound[node.word.text].text
    try:
        return Constant(float(text))
    except ValueError:
        context.note(node.start, node.end, f"expected a number, got '{text}' for '{node.word.text}'")
        return None


def _metric(context: Context, node: Name, bound: Bindings) -> str | None:
    """The metric's name with its index, if there is such a metric."""
    word = node.word
    if word.text not in context.scope.metrics:
        what = "unknown metric" if not node.bare or not bound else "unknown metric or variable"
        hint = nearest(word.text, (*context.scope.metrics, *(bound if node.bare else ())))
        context.note(word.start, word.end, f"{what} '{word.text}'{hint}")
        return None
    index = ",".join(node.index)
    return f"{word.text}[{index}]" if index else word.text


def _selectors(context: Context, node: Name) -> Iterator[tuple[str, LevelText]]:
    """The factors that are named, with their levels; what cannot be is noted, and given all the same."""
    met: set[str] = set()
    for word, level in node.selectors:
        if word.text == SEED:
            message = "expected no seed: cells are compared seed by seed"
            context.note(word.start, level.end, message)
            continue
        if word.text in met:
            context.note(word.start, word.end, f"'{word.text}' is named twice")
        elif word.text not in context.scope.factors:
            hint = nearest(word.text, context.scope.factors)
            context.note(word.start, word.end, f"unknown factor '{word.text}'{hint}")
        met.add(word.text)
        yield word.text, level


def _nowhere(context: Context, node: Name, named: dict[str, Level]) -> Selection | None:
    """No cell has these levels: that is wrong, unless an override has changed the cells."""
    text = ", ".join(f"{factor}={level_text(level)}" for factor, level in named.items())
    if context.scope.changed:
        return Selection(numbers=(Absent(text),), cells=(), open=())
    context.note(node.start, node.end, f"the study has no cell with {text}")
    return None
