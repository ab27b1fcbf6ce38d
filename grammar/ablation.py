"""The recipes that lack one part of a recipe: a summand, a sub-layer, an argument, the tie of its copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from .canonical import render
from .errors import RecipeError
from .nodes import BlockNode, Node, RepeatNode, SeriesNode, SumNode, TiedNode, Value, make_series, make_sum
from .recipe import Recipe, parse


def ablations(recipe: Recipe) -> tuple[Recipe, ...]:
    """Return all distinct recipes that lack exactly one part of this recipe, in the order of the text.

    These parts can go:

    - a summand of a sum or a sub-layer of a series, while another remains;
    - a block's argument that differs from its default;
    - the tie of tied copies.

    A removal that leaves no valid recipe is skipped.
    """
    found: dict[str, Recipe] = {}
    for text in dict.fromkeys(map(render, _without_one(recipe.root))):
        try:
            without = parse(text)
        except RecipeError:
            continue
        if without.text != recipe.text:
            found.setdefault(without.text, without)
    return tuple(found.values())


def _without_one(node: Value) -> Iterator[Node]:
    """Yield the node without each of its parts in turn; some results are no recipe."""
    match node:
        case SumNode():
            yield from _without_part(node.parts, make_sum)
        case SeriesNode():
            yield from _without_part(node.parts, make_series)
        case RepeatNode():
            yield from (RepeatNode(node.count, body) for body in _without_one(node.body))
        case TiedNode():
            yield node.body
            for repeat in _without_one(node.body):
                assert isinstance(repeat, RepeatNode), "a repeat without a part of its body is one"
                yield TiedNode(repeat)
        case BlockNode():
            for place, (name, value) in enumerate(node.arguments):
                before, after = node.arguments[:place], node.arguments[place + 1 :]
                yield BlockNode(node.name, (*before, *after))
                for without in _without_one(value):
                    yield BlockNode(node.name, (*before, (name, without), *after))
        case _:  # a hole, a choice, a number or a word has no parts of its own
            return


def _without_part(parts: Sequence[Node], join: Callable[[Sequence[Node]], Node]) -> Iterator[Node]:
    """Yield the parts without one of them, and with one that lacks a part of its own."""
    for place, part in enumerate(parts):
        others = [*parts[:place], *parts[place + 1 :]]
        yield join(others) if len(others) > 1 else others[0]
        yield from (join([*parts[:place], without, *parts[place + 1 :]]) for without in _without_one(part))
