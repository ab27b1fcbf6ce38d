"""How tests draw recipes at random: any blocks of the vocabulary with any arguments, joined in every form."""

from __future__ import annotations

from hypothesis import strategies as st

from activemem.grammar import Parameter, Role, lookup, names
from activemem.grammar.checks import clash
from activemem.grammar.nodes import Block, Node, Repeat, Tied, Value, series_of, sum_of
from activemem.grammar.vocabulary import REQUIRED

JOINABLE = tuple(name for name in names() if lookup(name).role in (Role.MIXER, Role.CHANNEL))
"""The blocks that can stand anywhere in sums and series."""


def plain(parameter: Parameter) -> st.SearchStrategy[Value]:
    """Any value that a parameter takes, neither a hole nor a search dimension."""
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
def blocks(draw: st.DrawFn, values=plain, given: tuple[str, ...] = ()) -> Block:
    """A block of the given names, or of all that map sequences to the same, its values drawn by strategy."""
    spec = lookup(draw(st.sampled_from(given or JOINABLE)))
    assert spec is not None
    arguments: list[tuple[str, Value]] = []
    for parameter in spec.parameters:
        if parameter.default is REQUIRED or draw(st.booleans()):
            value = draw(values(parameter))
            if value != parameter.default:
                arguments.append((parameter.name, value))
    return allowed(Block(spec.name, tuple(arguments)))


def allowed(block: Block) -> Block:
    """The block without the last of its arguments, as many as its parameters do not allow together."""
    spec = lookup(block.name)
    assert spec is not None
    if clash(spec, block) is None:
        return block
    return allowed(Block(block.name, block.arguments[:-1]))


def compound(parts: st.SearchStrategy[Node], counts: st.SearchStrategy[Value]) -> st.SearchStrategy[Node]:
    """Sums, series, repeats and tied repeats of such parts."""
    several = st.lists(parts, min_size=2, max_size=3)
    repeats = st.builds(Repeat, counts, parts)
    return several.map(sum_of) | several.map(series_of) | repeats | repeats.map(Tied)


def closed(given: tuple[str, ...] = ()) -> st.SearchStrategy[Node]:
    """Recipes without holes and search dimensions, of blocks of the given names or of any."""
    return st.recursive(blocks(given=given), lambda parts: compound(parts, st.integers(1, 3)), max_leaves=8)


CLOSED = closed()
