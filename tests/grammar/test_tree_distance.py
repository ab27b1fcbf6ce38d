"""Distances of recipes in blocks, independent of the order of sums, against a slow definition."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activemem.grammar import (
    DistanceTree,
    node_label,
    node_parts,
    parse,
    render,
    replacement_cost,
)

from .strategies import blocks, compound

BASE = "4 * (sa + highway_conv(k=20) >> ff(512))"


@pytest.mark.parametrize(
    ("other", "distance"),
    [
        (BASE, 0.0),
        ("4 * (highway_conv(k=20) + sa >> ff(512))", 0.0),
        ("4 * (sa + highway_conv(k=10) >> ff(512))", 0.25),
        ("4 * (sa + highway_conv(k=20) >> ff(512, act=gelu))", 0.5),
        ("2 * (sa + highway_conv(k=20) >> ff(512))", 0.25),
        ("sa + highway_conv(k=20) >> ff(512)", 0.5),  # an operator less
        ("4 * (sa + conv(k=20) >> ff(512))", 1.0),
        ("4 * (sa + highway_conv(k=20) >> ff(512) >> gru)", 1.0),
        ("4 * (sa >> ff(512))", 1.5),  # a block and a sum less
        ("tied(4 * (sa + highway_conv(k=20) >> ff(512)))", 0.5),
        ("sa", 3.5),  # two blocks, a sum, a series and a repeat less
    ],
)
def test_the_distance_counts_blocks_operators_and_parameters(other, distance):
    assert DistanceTree(parse(BASE).root).distance(DistanceTree(parse(other).root)) == pytest.approx(distance)


SMALL = st.recursive(
    blocks(block_names=("sa", "conv", "ff", "gru")),
    lambda parts: compound(parts, st.integers(1, 6)),
    max_leaves=4,
)


@settings(max_examples=25)
@given(SMALL, SMALL, SMALL)
def test_it_is_a_metric_that_equals_its_slow_definition_and_has_its_bound_below(first, second, third):
    trees = [DistanceTree(each) for each in (first, second, third)]
    distance = trees[0].distance(trees[1])
    assert distance == pytest.approx(slow_distance((first,), (second,)))
    assert distance == pytest.approx(trees[1].distance(trees[0]))
    assert trees[0].distance(trees[2]) <= distance + trees[1].distance(trees[2]) + 1e-9
    assert trees[0].lower_bound(render(second)) <= distance + 1e-9


def slow_distance(mine, theirs):
    """Return the distance of two forests: the last root is removed, inserted, or replaced."""

    @cache
    def weight(forest):
        return sum(node_label(tree).weight + weight(tuple(node_parts(tree))) for tree in forest)

    @cache
    def between(mine, theirs):
        if not (mine and theirs):
            return weight(mine) + weight(theirs)
        last, other = mine[-1], theirs[-1]
        below, other_below = tuple(node_parts(last)), tuple(node_parts(other))
        return min(
            between(mine[:-1] + below, theirs) + node_label(last).weight,
            between(mine, theirs[:-1] + other_below) + node_label(other).weight,
            between(mine[:-1], theirs[:-1])
            + between(below, other_below)
            + replacement_cost(node_label(last), node_label(other)),
        )

    return between(mine, theirs)
