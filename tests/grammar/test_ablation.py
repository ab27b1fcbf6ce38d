"""Ablations of a recipe: each part once, only sensible and valid recipes."""

import pytest
from hypothesis import given, settings

from activemem.grammar import Recipe, parse
from activemem.grammar.difference import ablations, describe_difference

from .strategies import closed_recipes


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "4 * (sa + highway_conv(k=20) >> ff(512))",
            ["− (sa + highway_conv(k=20))", "− sa", "− highway_conv(k=20)", "− ff(512)"],
        ),
        (
            "2 * (sa(heads=4, pos=relative, span=128) >> ff(512, act=gelu))",
            [
                "− sa(heads=4, pos=relative, span=128)",
                "− pos=relative of sa",
                "− ff(512, act=gelu)",
                "− act=gelu of ff",
            ],  # a relative position needs its span
        ),
        (
            "mamba(channels=8, state=4, short_conv=2) >> delta(heads=2, short_conv=3)",
            [
                "− mamba(channels=8, state=4, short_conv=2)",
                "− delta(heads=2, short_conv=3)",
                "− short_conv=3 of delta",
            ],  # mamba has a short convolution at any rate, delta only if asked
        ),
        ("tied(2 * (sa >> ff(8)))", ["not tied", "− sa", "− ff(8)"]),
        ("4 * ({mixer} >> ff(512))", ["− {mixer}", "− ff(512)"]),
        ("sa", []),
        ("conv(k=3)", []),
    ],
)
def test_each_part_is_taken_away_once(text, told):
    recipe = parse(text)
    assert [describe_difference(recipe.root, each.root) for each in ablations(recipe)] == told


@settings(deadline=None, max_examples=50)
@given(closed_recipes().map(Recipe))
def test_an_ablation_is_another_recipe_and_is_named_by_the_removed_part(recipe: Recipe):
    found = ablations(recipe)
    assert len({each.text for each in found} | {recipe.text}) == len(found) + 1
    for each in found:
        assert describe_difference(recipe.root, each.root)
