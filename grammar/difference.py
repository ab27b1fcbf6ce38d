"""Differences between two recipes, as in ablation tables, and recipes without one part.

Examples of differences are `− conv(k=9)`, `sa → conv(k=9)` and `4 × → 6 ×`.
"""

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
    """Yield the node without each of its parts in turn; some results are not recipes."""
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
                assert isinstance(repeat, RepeatNode), "a repeat without a part of its body is still a repeat"
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
    """Yield the parts without one of them, and with one that lacks an inner part."""
    for place, part in enumerate(parts):
        others = [*parts[:place], *parts[place + 1 :]]
        yield join(others) if len(others) > 1 else others[0]
        yield from (join([*parts[:place], without, *parts[place + 1 :]]) for without in _without_one(part))


def describe_difference(before: Node, after: Node) -> str:
    """Return the smallest list of removals, additions and replacements; "" for equal recipes."""
    return ", ".join(_differences(before, after))


def _differences(before: Node, after: Node) -> Iterator[str]:
    match before, after:
        case _ if before == after:
            return
        case (SumNode(), SumNode()) | (SeriesNode(), SeriesNode()):
            yield from _differing_parts(before.parts, after.parts, before, after)
        case (SumNode() | SeriesNode(), _) if after in before.parts:
            yield from (f"− {_operand(part)}" for part in _without(before.parts, [after]))
        case (_, SumNode() | SeriesNode()) if before in after.parts:
            yield from (f"+ {_operand(part)}" for part in _without(after.parts, [before]))
        case RepeatNode(), RepeatNode():
            if before.count != after.count:
                yield f"{_count(before)} → {_count(after)}"
            yield from _differences(before.body, after.body)
        case TiedNode(), TiedNode():
            yield from _differences(before.body, after.body)
        case TiedNode(), _ if before.body == after:
            yield "not tied"
        case _, TiedNode() if after.body == before:
            yield "tied"
        case BlockNode(), BlockNode() if before.name == after.name and (less := _fewer(before, after)):
            yield from (f"− {argument} of {before.name}" for argument in less)
        case _:
            yield f"{render(before)} → {render(after)}"


def _fewer(before: BlockNode, after: BlockNode) -> list[str]:
    """Return the arguments that only the first block has; empty if any other argument differs."""
    if any(argument not in before.arguments for argument in after.arguments):
        return []
    less = [argument for argument in before.arguments if argument not in after.arguments]
    texts = (render(BlockNode(before.name, (argument,))) for argument in less)
    return [text.removeprefix(f"{before.name}(").removesuffix(")") for text in texts]


def _differing_parts(
    before: Sequence[Node], after: Sequence[Node], whole: Node, other: Node
) -> Iterator[str]:
    """Yield the differences of two lists of parts: parts of only one list, or the single differing pair."""
    gone, new = _without(before, after), _without(after, before)
    if not gone and not new:  # in another order
        yield f"{render(whole)} → {render(other)}"
    elif len(gone) == len(new) == 1:
        yield from _differences(gone[0], new[0])
    elif gone and new:
        yield f"{render(whole)} → {render(other)}"
    else:
        yield from (f"− {_operand(part)}" for part in gone)
        yield from (f"+ {_operand(part)}" for part in new)


def _without(parts: Sequence[Node], others: Sequence[Node]) -> list[Node]:
    """Return the parts without the others, each removed as often as it occurs there."""
    left = list(others)
    found: list[Node] = []
    for part in parts:
        if part in left:
            left.remove(part)
        else:
            found.append(part)
    return found


def _operand(part: Node) -> str:
    return f"({render(part)})" if isinstance(part, SumNode | SeriesNode) else render(part)


def _count(repeat: RepeatNode) -> str:
    return f"{repeat.count if isinstance(repeat.count, int) else render(repeat.count)} ×"
