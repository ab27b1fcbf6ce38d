"""Differences between two recipes as text, and the ablations of one recipe.

An ablation is the recipe without one of its parts. Examples of differences are `− conv(k=9)`, `sa →
conv(k=9)` and `4 × → 6 ×`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from .canonical import render
from .errors import RecipeError
from .nodes import (
    BlockNode,
    Node,
    RepeatNode,
    SeriesNode,
    SumNode,
    TiedNode,
    Value,
    make_series,
    make_sum,
)
from .recipe import Recipe, parse
from .vocabulary.spec import lookup


def ablations(recipe: Recipe) -> tuple[Recipe, ...]:
    """Return the recipes that remain when one part of a recipe is removed.

    They are distinct, and in the order of the removed parts in the text.

    These parts can be removed:

    - a summand of a sum or a sub-layer of a series, while another remains;
    - a block's argument that differs from its default, unless it is a size, such as a number of heads;
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
    """Yield copies of a node, perhaps invalid, each with one part, block or argument removed."""
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
                if not _is_size(node.name, name):
                    yield BlockNode(node.name, (*before, *after))
                for without in _without_one(value):
                    yield BlockNode(node.name, (*before, (name, without), *after))
        case _:  # holes, choices, numbers and words have no parts
            return


def _is_size(block: str, argument: str) -> bool:
    """Return whether an argument is a size of its block, such as the number of heads.

    Sizes are whole numbers without a default, or with one above 0: a default of 0 means that an option is
    off.
    """
    spec = lookup(block)
    parameter = None if spec is None else spec.parameter(argument)
    return parameter is not None and parameter.kind == "integer" and bool(parameter.default)


def _without_part(parts: Sequence[Node], join: Callable[[Sequence[Node]], Node]) -> Iterator[Node]:
    """Yield copies of a sum or series, each without one of `parts` or a part inside one of them."""
    for place, part in enumerate(parts):
        others = [*parts[:place], *parts[place + 1 :]]
        yield join(others) if len(others) > 1 else others[0]
        yield from (join([*parts[:place], without, *parts[place + 1 :]]) for without in _without_one(part))


def describe_difference(before: Node, after: Node) -> str:
    """Describe which parts of `before` are removed, added or replaced in `after`; return "" if none are."""
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
        case BlockNode(), BlockNode() if before.name == after.name and (
            inside := [*_removed(before, after), *_changed(before, after)]
        ):
            yield from inside
        case _:
            yield f"{render(before)} → {render(after)}"


def _removed(before: BlockNode, after: BlockNode) -> list[str]:
    """Describe the arguments that `after` lacks; return an empty list if there is any other change."""
    if any(argument not in before.arguments for argument in after.arguments):
        return []
    removed = [argument for argument in before.arguments if argument not in after.arguments]
    texts = (render(BlockNode(before.name, (argument,))) for argument in removed)
    return [f"− {text.removeprefix(f'{before.name}(').removesuffix(')')} of {before.name}" for text in texts]


def _changed(before: BlockNode, after: BlockNode) -> list[str]:
    """Describe differences between recipes inside two blocks, such as the encoders of two `seq2seq`.

    If an argument of another type differs, such as a number, return no differences.
    """
    old, new = dict(before.arguments), dict(after.arguments)
    found: list[str] = []
    for name in old | new:
        one, other = old.get(name), new.get(name)
        if one == other:
            continue
        if not (isinstance(one, _PARTS) and isinstance(other, _PARTS)):
            return []
        found += [f"{difference} of {name}" for difference in _differences(one, other)]
    return found


_PARTS = (BlockNode, RepeatNode, SeriesNode, SumNode, TiedNode)


def _differing_parts(
    before: Sequence[Node], after: Sequence[Node], whole: Node, other: Node
) -> Iterator[str]:
    """Yield differences between the parts of two sums or series, `whole` and `other`.

    If exactly one part is replaced, only the differences inside that part are described.
    """
    gone, new = _without(before, after), _without(after, before)
    if not gone and not new:  # the same parts in another order
        yield f"{render(whole)} → {render(other)}"
    elif len(gone) == len(new) == 1:
        yield from _differences(gone[0], new[0])
    elif gone and new:
        yield f"{render(whole)} → {render(other)}"
    else:
        yield from (f"− {_operand(part)}" for part in gone)
        yield from (f"+ {_operand(part)}" for part in new)


def _without(parts: Sequence[Node], others: Sequence[Node]) -> list[Node]:
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
