"""Spaces are counted and listed, with each architecture once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from activemem import Space
from activemem.grammar import Cardinality, Recipe, SpaceError, parse, render
from activemem.grammar.canonical import option_label
from activemem.grammar.dimensions import resolve
from activemem.grammar.nodes import (
    BlockNode,
    ChoiceDimension,
    Dimension,
    IntegerDimension,
    Node,
    RepeatNode,
    Scalar,
    TiedNode,
    make_series,
    make_sum,
)
from activemem.grammar.space import count_derivations

from ..golden import GoldenTexts

QUICK = settings(
    deadline=None, max_examples=50, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)
MOST_WAYS = 400

SMALL = st.integers(1, 3)
NUMBERS = SMALL | st.tuples(SMALL, SMALL, st.integers(1, 2)).map(
    lambda r: IntegerDimension(min(r[:2]), max(r[:2]), r[2])
)
KERNELS = NUMBERS | st.lists(NUMBERS, min_size=1, max_size=3, unique=True).map(
    lambda found: ChoiceDimension(tuple(found))
)
ACTS = st.sampled_from([(), (("act", "gelu"),), (("act", ChoiceDimension(("relu", "gelu"))),)])
BLOCKS = (
    st.just(BlockNode("sa"))
    | KERNELS.map(lambda k: BlockNode("conv", (("k", k),)))
    | st.tuples(KERNELS, ACTS).map(lambda pair: BlockNode("ff", (("filter", pair[0]), *pair[1])))
)


def _compound(parts: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    several = st.lists(parts, min_size=2, max_size=3)
    repeats = st.builds(RepeatNode, KERNELS, parts)
    options = st.lists(parts, min_size=1, max_size=3, unique=True).map(
        lambda found: ChoiceDimension(tuple(found))
    )
    return (
        several.map(make_sum) | several.map(make_series) | repeats | repeats.map(TiedNode) | options | options
    )


SPACES = st.recursive(BLOCKS, _compound, max_leaves=9)


def settlings(root: Node) -> Iterator[Recipe]:
    """Yield all assignments of all dimensions, the last varying fastest, by a slow and obvious method."""
    values: list[tuple[int, int]] = []  # of each dimension asked for, the place of its value and their number
    while True:
        asked = 0

        def ask(_name: str, dimension: Dimension) -> Scalar:
            nonlocal asked
            options = _options(dimension)
            if asked == len(values):
                values.append((0, len(options)))
            asked += 1
            return options[values[asked - 1][0]]

        yield parse(render(resolve(root, ask)))
        while values and values[-1][0] + 1 == values[-1][1]:
            values.pop()
        if not values:
            return
        values[-1] = (values[-1][0] + 1, values[-1][1])


def _options(dimension: Dimension) -> list[Scalar]:
    if isinstance(dimension, ChoiceDimension):
        return [option_label(option) for option in dimension.options]
    assert isinstance(dimension, IntegerDimension)
    return list(range(dimension.low, dimension.high + 1, dimension.step))


@QUICK
@given(SPACES)
def test_a_space_is_listed_once_each_in_the_order_of_its_settlings_and_counted_so(root: Node):
    assume(count_derivations(root) <= MOST_WAYS)
    space = Space(Recipe(root))
    expected = list(dict.fromkeys(settlings(root)))
    listed = list(space)
    assert listed == expected
    assert space.count == Cardinality(forms=len(expected))
    assert all(parse(found.text).root == found.root for found in listed)


def test_sums_among_options_that_have_a_member_in_common_count_it_once():
    space = Space("choice(sa + conv(k=3), choice(sa, ff(3)) + conv(k=integer(2, 4)))")
    assert space.count == Cardinality(forms=len(set(space))) == Cardinality(forms=6)


@QUICK
@given(SPACES, SPACES)
def test_a_recipe_is_in_a_space_only_if_the_space_lists_it(root: Node, other: Node):
    assume(count_derivations(root) <= MOST_WAYS)
    assume(count_derivations(other) <= 50)
    listed = set(Space(Recipe(root)))
    assert all((found in Space(Recipe(root))) == (found in listed) for found in Space(Recipe(other)))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("sa", "1 architecture"),
        ("choice(sa, conv(k=3)) + choice(sa, conv(k=3))", "3 architectures"),
        ("choice(sa >> ff(8), sa) >> choice(ff(8), ff(8) >> ff(8))", "3 architectures"),
        ("ff(8, act=choice(relu, gelu)) >> ff(choice(8, integer(6, 9)))", "8 architectures"),
        ("choice(2 * sa, integer(1, 3) * sa)", "3 architectures"),
        ("{mixer} >> ff(integer(8, 64))", "57 architectures"),
        ("tied(choice(2, 3) * choice(sa, tied(2 * sa)))", "4 architectures"),
        ("ff(integer(1, 1000, log=true)) >> ff(integer(1, 1001, step=10))", "at most 101,000 architectures"),
        ("each(4, choice(sa, conv(k=integer(3, 40))))", "at most 2,313,441 architectures"),
        ("choice(each(2, choice(sa, lstm)), each(3, choice(sa, lstm)))", "12 architectures"),
        (" + ".join(["choice(sa, conv(k=integer(1, 9)))"] * 3), "220 architectures"),
        (" + ".join(["choice(sa, conv(k=integer(1, 9)))"] * 10), "at most 10,000,000,000 architectures"),
        ("choice(conv(k=integer(2, 1002, step=4)), conv(k=integer(4, 1000, step=6)))", "335 architectures"),
        (" >> ".join(["choice(sa, conv(k=integer(3, 40)))"] * 20), "at most 6.63e+31 architectures"),
        (
            " >> ".join(["choice(conv(k=2), conv(k=2) >> ff(integer(1, 9)))"] * 30),
            "at most 1.00e+30 architectures",
        ),
    ],
)
def test_architectures_are_counted_whatever_leads_to_them(text: str, count: str):
    assert str(Space(parse(text)).count) == count


def test_real_numbers_are_without_end_and_their_forms_are_counted(
    blend: Callable[[str], Space], golden: GoldenTexts
):
    space = blend(
        "choice(sa, blend(rate=real(0, 1)), blend(rate=real(0.25, 0.25), gated=choice(true, false)))"
    )
    assert space.count == Cardinality(forms=4, infinite=True)
    assert space.count.architectures == "infinite"
    assert str(space.count).endswith(" of 4 forms")
    with golden.raises(SpaceError):
        list(space)


def test_a_large_space_with_overlaps_is_listed_once_each(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("activemem.grammar.space.MAX_LISTED", 5)
    space = Space("choice(sa, conv(k=3), ff(8)) + choice(sa, conv(k=3), cgru(k=2)) + choice(sa, conv(k=4))")
    assert space.count == Cardinality(forms=18, exact=False)
    assert str(space.count) == "at most 18 architectures"
    listed = list(space)
    assert len(set(listed)) == len(listed) == 16


def test_the_sums_of_a_space_are_found_in_any_order():
    space = Space(parse("choice(sa, conv(k=3) + ff(8)) + choice(cgru(k=2), conv(k=integer(2, 4)))"))
    assert parse("conv(k=2) + sa") in space
    assert parse("conv(k=3) + conv(k=4) + ff(8)") in space
    assert parse("conv(k=4) + conv(k=4) + ff(8)") not in space


def test_parts_inside_of_blocks_and_other_values_are_counted_by_what_they_are(more_blocks: None):
    text = (
        "pair(choice(sa, sa >> ff(8)), choice(ff(1), blend(gated=choice(true, false)))) >> choice(ff(1), sa)"
    )
    space = Space(text)
    assert [one.text for one in space][:4] == [
        "pair(first=sa, second=ff(1)) >> ff(1)",
        "pair(first=sa, second=ff(1)) >> sa",
        "pair(first=sa, second=blend(gated=true)) >> ff(1)",
        "pair(first=sa, second=blend(gated=true)) >> sa",
    ]
    assert space.count.architectures == len(list(space)) == 12
