"""A test of whether several derivations of a part can give the same member, so that products overcount.

The test is cautious: where it cannot decide, it answers that parts overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import gcd, lcm

from ..nodes import (
    BlockNode,
    ChoiceDimension,
    Dimension,
    IntegerDimension,
    RealDimension,
    RepeatNode,
    SeriesNode,
    SumNode,
    TiedNode,
    Value,
    children,
    walk,
)
from ..vocabulary.registry import spec_of
from .derivations import as_range

_Edges = list[list[tuple[Value, int]]]
"""An automaton that reads a series: from each state, the parts that it reads and the states they lead to."""


def has_overlaps(part: Value) -> bool:
    """Return whether two derivations of a part may give the same member."""
    if any(map(has_overlaps, children(part))):
        return True
    match part:
        case ChoiceDimension():
            return any(may_overlap(*pair) for pair in combinations(_leaves(part), 2))
        case SumNode():
            if any(isinstance(leaf, SumNode) for each in part.parts for leaf in _leaves(each)):
                return True  # an option that is a sum makes this one longer
            pairs = combinations(part.parts, 2)
            return any(may_overlap(*pair) for pair in pairs if any(map(_is_open, pair)))
        case SeriesNode() if any(isinstance(leaf, SeriesNode) for one in part.parts for leaf in _leaves(one)):
            return _meet(_automaton(part), _automaton(part), same=True)
        case _:
            return False


def may_overlap(first: Value, second: Value) -> bool:  # noqa: PLR0911 -- one return for each kind
    """Return whether two parts may have a member in common."""
    if isinstance(first, ChoiceDimension) or isinstance(second, ChoiceDimension):
        return any(may_overlap(one, other) for one in _leaves(first) for other in _leaves(second))
    match first, second:
        case (bool(), _) | (_, bool()):
            return type(first) is type(second) and first == second
        case (int() | IntegerDimension(), int() | IntegerDimension()):
            return _share_numbers(as_range(first), as_range(second))
        case (float() | RealDimension(), float() | RealDimension()):
            (low, high), (other_low, other_high) = _bounds(first), _bounds(second)
            return low <= other_high and other_low <= high
        case BlockNode(), BlockNode():
            if first.name != second.name:
                return False
            spec = spec_of(first.name)
            one, other = spec.settings(first), spec.settings(second)
            return all(may_overlap(one[name], other[name]) for name in one)
        case (RepeatNode(), RepeatNode()) | (TiedNode(), TiedNode()):
            return all(map(may_overlap, children(first), children(second)))
        case SeriesNode(), SeriesNode():
            return _meet(_automaton(first), _automaton(second))
        case SumNode(), SumNode():
            return _sums_may_overlap(first, second)
        case _:
            return type(first) is type(second) and first == second


def _sums_may_overlap(first: SumNode, second: SumNode) -> bool:
    """Return whether each part of each sum has a counterpart in the other."""
    whole = [[*map(_leaves, each.parts)] for each in (first, second)]
    if any(isinstance(leaf, SumNode) for parts in whole for leaves in parts for leaf in leaves):
        return True
    return len(first.parts) == len(second.parts) and all(
        any(may_overlap(one, other) for other in others.parts)
        for some, others in ((first, second), (second, first))
        for one in some.parts
    )


def _automaton(series: SeriesNode) -> _Edges:
    """Return an automaton of a series: state 0 begins, state 1 ends."""
    edges: _Edges = [[], []]

    def add(parts: Sequence[Value], source: int, end: int) -> None:
        for number, part in enumerate(parts, start=1):
            target = end if number == len(parts) else len(edges)
            if target == len(edges):
                edges.append([])
            for leaf in _leaves(part):
                if isinstance(leaf, SeriesNode):
                    add(leaf.parts, source, target)
                else:
                    edges[source].append((leaf, target))
            source = target

    add(series.parts, 0, 1)
    return edges


def _meet(first: _Edges, second: _Edges, *, same: bool = False) -> bool:
    """Return whether two automata may read the same series; of the `same` one, in two different ways."""
    new, known = [(0, 0, same)], {(0, 0, same)}
    for one, other, is_alike in new:
        if one == other == 1 and not is_alike:
            return True
        for number, (part, target) in enumerate(first[one]):
            for place, (counterpart, further) in enumerate(second[other]):
                if is_alike and place < number:
                    continue  # a pair the other way round
                state = (target, further, is_alike and place == number)
                if state not in known and (state[2] or may_overlap(part, counterpart)):
                    known.add(state)
                    new.append(state)
    return False


def _share_numbers(first: range, second: range) -> bool:
    """Return whether two ranges have a number in common, by the Chinese remainder theorem."""
    shared = gcd(first.step, second.step)
    gap, rest = divmod(second[0] - first[0], shared)
    if rest:
        return False
    steps = gap * pow(first.step // shared, -1, second.step // shared) % (second.step // shared)
    common, cycle = first[0] + steps * first.step, lcm(first.step, second.step)
    common += -((common - max(first[0], second[0])) // cycle) * cycle
    return common <= min(first[-1], second[-1])


def _bounds(reals: float | RealDimension) -> tuple[float, float]:
    return (reals.low, reals.high) if isinstance(reals, RealDimension) else (reals, reals)


def _is_open(part: Value) -> bool:
    return any(isinstance(each, Dimension) for each in walk(part))


def _leaves(part: Value) -> list[Value]:
    """Return the options of a choice, with those of choices among them; any other part alone."""
    if not isinstance(part, ChoiceDimension):
        return [part]
    return [leaf for option in part.options for leaf in _leaves(option)]
