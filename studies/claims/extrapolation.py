"""`law(…)`: what a power law through the smaller sizes of a ladder foretells of a number."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import replace

from . import syntax_tree as syntax
from .comparisons import Extrapolation, Number, Quantity, Quotient, Reduction, SignedSum, iter_quantities
from .context import Bindings, ClaimContext
from .scope import Cell

ResolveNumber = Callable[[ClaimContext, syntax.SyntaxNode, Bindings], Number | None]

_FEWEST = 2  # sizes that a law goes through


def resolve_extrapolation(
    context: ClaimContext, node: syntax.FunctionCall, bound: Bindings, resolve: ResolveNumber
) -> Number | None:
    """Return the extrapolation to the size of its argument; report faults and return None."""
    sizes = context.scope.ladder
    fault = None
    if not sizes:
        fault = "law(…) goes through the sizes of a [ladder], and the study has none"
    elif node.loops or len(node.arguments) != 1:
        fault = "expected one number, as law(test_loss[width=64])"
    if fault is not None:
        context.report_error(node.start, node.end, fault)
        return None
    number = resolve(context, node.arguments[0], bound)
    if number is None:
        return None
    cells = [each.cell for each in iter_quantities(number)]
    places = {_place(context, cell) for cell in cells}
    if len(places) != 1 or (place := next(iter(places))) < _FEWEST:
        message = f"expected cells of one size, with at least {_FEWEST} smaller ones in the [ladder]"
        context.report_error(node.start, node.end, f"{message}, got {_sizes_words(context, places)}")
        return None
    parts = tuple((_at(context, cells[0], each), _moved(context, number, each)) for each in range(place))
    return Extrapolation(of=number, cell=cells[0], parts=parts)


def _place(context: ClaimContext, cell: Cell) -> int:
    """Return the index of a cell's size."""
    levels, sizes = dict(cell), context.scope.ladder
    rungs = list(zip(*sizes.values(), strict=True))
    return rungs.index(tuple(levels[name] for name in sizes))


def _sizes_words(context: ClaimContext, places: Set[int]) -> str:
    """`width=24`, `width=24 and width=32`, or none."""
    sizes = context.scope.ladder
    words = [
        ", ".join(f"{name}={levels[place]}" for name, levels in sizes.items()) for place in sorted(places)
    ]
    return " and ".join(words) or "none"


def _at(context: ClaimContext, cell: Cell, place: int) -> Cell:
    """Return the cell with another size."""
    sizes = context.scope.ladder
    return tuple((name, sizes[name][place] if name in sizes else level) for name, level in cell)


def _moved(context: ClaimContext, number: Number, place: int) -> Number:
    """Return the number with another size in all of its cells."""
    match number:
        case Quantity():
            return replace(number, cell=_at(context, number.cell, place))
        case SignedSum():
            return SignedSum(tuple((sign, _moved(context, term, place)) for sign, term in number.terms))
        case Quotient():
            above, below = number.numerator, number.denominator
            return Quotient(_moved(context, above, place), _moved(context, below, place))
        case Reduction():
            return Reduction(number.function, tuple(_moved(context, part, place) for part in number.parts))
        case _:
            return number
