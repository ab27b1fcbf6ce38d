"""Random recipes for tests: any blocks with any arguments, combined in any form."""

from __future__ import annotations

from hypothesis import strategies as st

from activemem.grammar import Parameter, Role, lookup
from activemem.grammar.checker import find_conflict
from activemem.grammar.nodes import BlockNode, Node, RepeatNode, TiedNode, Value, make_series, make_sum
from activemem.grammar.vocabulary.spec import REQUIRED, builtin_names

SEQUENCE_BLOCKS = tuple(name for name in builtin_names() if lookup(name).role in (Role.MIXER, Role.CHANNEL))
"""The blocks that are allowed anywhere in sums and series."""


def parameter_values(parameter: Parameter) -> st.SearchStrategy[Value]:
    """Return a strategy for the values of a parameter, without holes and dimensions."""
    match parameter.kind:
        case "word":
            return st.sampled_from(parameter.words)
        case "boolean":
            return st.booleans()
        case "real":
            return st.floats(parameter.low, parameter.high)
    assert parameter.kind == "integer", f"no strategy for {parameter.kind}"
    return st.integers(int(parameter.low or 0), int(parameter.high or 0))


@st.composite
def blocks(draw: st.DrawFn, values=parameter_values, block_names: tuple[str, ...] = ()) -> BlockNode:
    """Draw a block with a given name, by default any sequence-to-sequence block, with random values."""
    spec = lookup(draw(st.sampled_from(block_names or SEQUENCE_BLOCKS)))
    assert spec is not None
    arguments: list[tuple[str, Value]] = []
    for parameter in spec.parameters:
        if parameter.default is REQUIRED or draw(st.booleans()):
            value = draw(values(parameter))
            if value != parameter.default:
                arguments.append((parameter.name, value))
    return drop_clashing_arguments(BlockNode(spec.name, tuple(arguments)))


def drop_clashing_arguments(block: BlockNode) -> BlockNode:
    """Return the block without its last arguments, as far as parameters are incompatible."""
    spec = lookup(block.name)
    assert spec is not None
    if find_conflict(spec, block) is None:
        return block
    return drop_clashing_arguments(BlockNode(block.name, block.arguments[:-1]))


def compound(parts: st.SearchStrategy[Node], counts: st.SearchStrategy[Value]) -> st.SearchStrategy[Node]:
    """Return a strategy for sums, series, repeats and tied repeats of these parts."""
    several = st.lists(parts, min_size=2, max_size=3)
    repeats = st.builds(RepeatNode, counts, parts)
    return several.map(make_sum) | several.map(make_series) | repeats | repeats.map(TiedNode)


def closed_recipes(block_names: tuple[str, ...] = (), max_blocks: int = 8) -> st.SearchStrategy[Node]:
    """Return a strategy for recipes without holes and dimensions, with few blocks."""
    return st.recursive(
        blocks(block_names=block_names),
        lambda parts: compound(parts, st.integers(1, 3)),
        max_leaves=max_blocks,
    )


CLOSED_RECIPES = closed_recipes()
