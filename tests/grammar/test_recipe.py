"""Recipes: identity, holes and search dimensions."""

from __future__ import annotations

import pickle

import pytest

from activemem.grammar import Recipe, RecipeError, nodes, parse, parse_dimension
from activemem.grammar.canonical import option_label
from activemem.grammar.nodes import (
    BlockNode,
    ChoiceDimension,
    IntegerDimension,
    RealDimension,
    RepeatNode,
    SeriesNode,
    SumNode,
    TiedNode,
)

from ..golden import GoldenTexts


def test_the_first_example_of_the_language_is_the_tree_that_it_says():
    sa, highway = BlockNode("sa"), BlockNode("highway_conv", (("k", 20),))
    body = SeriesNode((SumNode((sa, highway)), BlockNode("ff", (("filter", 512),))))
    assert parse("4 * (sa + highway_conv(k=20) >> ff(512))").root == RepeatNode(4, body)


def test_tied_holds_a_repeat():
    assert parse("tied(4 * sa)").root == TiedNode(RepeatNode(4, BlockNode("sa")))


def test_each_writes_its_part_out_so_that_every_copy_has_its_own_dimensions():
    layer = "(choice(sa, conv(k=integer(3, 40))) >> ff(8))"
    written = parse(f"each(3, {layer})")
    assert written == parse(" >> ".join([layer] * 3))
    assert [name for name, _ in written.dimensions][:4] == ["choice", "conv.k", "choice.2", "conv.k.2"]
    assert parse("each(1, sa)") == parse("sa")
    assert parse("conv(k=3) + each(2, sa)").text == "conv(k=3) + (sa >> sa)"
    assert parse("each(2, {mixer})").fill({"mixer": "lstm"}).text == "lstm >> lstm"


@pytest.mark.parametrize(
    "text",
    [
        "each",
        "each(sa)",
        "each(n=2, sa)",
        "each({n}, sa)",
        "each(0, sa)",
        "each(1.5, sa)",
        "each(2, attention_pool)",
        "each(2, seq2seq(sa, sa))",
        "tied(each(2, sa))",
        "each(100, each(100, each(100, sa)))",
        " >> ".join(["each(9000, sa)"] * 500),
        "each(9000, sa)",
    ],
)
def test_parts_that_each_cannot_write_out_are_reported(text: str, golden: GoldenTexts):
    with golden.raises(RecipeError):
        parse(text)


def test_sums_are_the_same_recipe_in_any_order_and_keep_their_own_text():
    one = parse("4 * (sa + conv(k=3) >> ff(8))")
    other = parse("4 * (conv(k=3) + sa >> ff(8))")
    assert one == other
    assert hash(one) == hash(other)
    assert one.id == other.id
    assert one.text != other.text


def test_series_differ_by_their_order():
    assert parse("sa >> ff(8)") != parse("ff(8) >> sa")


def test_an_id_is_eight_hexadecimal_digits_that_never_change():
    assert parse("4 * (sa + highway_conv(k=20) >> ff(512))").id == "6eefcde3"


def test_a_recipe_can_be_pickled():
    recipe = parse("sa + conv(k=3)")
    copy = pickle.loads(pickle.dumps(recipe))
    assert (copy.text, copy.id, copy.root) == (recipe.text, recipe.id, recipe.root)


def test_holes_are_listed_in_order_each_once():
    assert parse("{n} * ({b} + {a} >> ff({n}) >> {b})").holes == ("n", "b", "a")
    assert parse("sa").holes == ()


@pytest.mark.parametrize(
    ("recipe", "fillings", "filled"),
    [
        ("4 * ({mixer} >> ff(8))", {"mixer": "sa + conv(k=3)"}, "4 * (sa + conv(k=3) >> ff(8))"),
        ("4 * {mixer}", {"mixer": "sa + conv(k=3)"}, "4 * (sa + conv(k=3))"),
        ("{mixer} >> ff(8)", {"mixer": "sa >> ff(9)"}, "sa >> ff(9) >> ff(8)"),
        ("{mixer} + cgru(k=2)", {"mixer": parse("sa + conv(k=3)")}, "sa + conv(k=3) + cgru(k=2)"),
        ("{mixer} + cgru(k=2)", {"mixer": parse("2 * sa").root}, "2 * sa + cgru(k=2)"),
        ("ff({filter}, act={act})", {"filter": 512, "act": "gelu"}, "ff(512, act=gelu)"),
        ("ff({filter}, act={act})", {"filter": 512, "act": "relu"}, "ff(512)"),
        ("{n} * sa", {"n": "integer(1, 4)"}, "integer(1, 4) * sa"),
        ("{n} * sa", {"n": IntegerDimension(1, 4)}, "integer(1, 4) * sa"),
        ("{a} >> {b} >> {a}", {"a": "ff({n})"}, "ff({n}) >> {b} >> ff({n})"),
        ("tied({n} * sa)", {"n": 4}, "tied(4 * sa)"),
    ],
)
def test_holes_are_filled_where_they_stand(recipe: str, fillings: dict[str, nodes.Value], filled: str):
    assert parse(recipe).fill(fillings).text == filled


def test_a_filling_without_its_hole_is_refused(golden):
    with golden.raises(RecipeError):
        parse("{mixer} >> ff({filter})").fill({"mixer": "sa", "filtre": 8, "zzz": 3})


def test_a_filling_that_does_not_fit_is_shown_in_its_place(golden):
    with golden.raises(RecipeError):
        parse("4 * ({mixer} >> ff({filter}))").fill({"mixer": "conv(k=0)", "filter": "sa"})


@pytest.mark.parametrize("filling", ["sa) >> (sa", "sa >>", "", "sa, ff(8)"])
def test_a_filling_must_be_an_expression_by_itself(filling: str):
    with pytest.raises(RecipeError) as caught:
        parse("{mixer} >> ff(8)").fill({"mixer": filling})
    assert caught.value.text == filling


SPACE = (
    "integer(1, 4) * "
    "(choice(sa, conv(k=integer(3, 40))) >> conv(k=choice(3, 5)) >> ff(8, act=choice(relu, gelu)))"
)


def test_dimensions_are_listed_with_names_in_order():
    assert parse(SPACE).dimensions == (
        ("count", IntegerDimension(1, 4)),
        ("choice", ChoiceDimension((BlockNode("sa"), BlockNode("conv", (("k", IntegerDimension(3, 40)),))))),
        ("conv.k", IntegerDimension(3, 40)),
        ("conv.k.2", ChoiceDimension((3, 5))),
        ("ff.act", ChoiceDimension(("relu", "gelu"))),
    )


def test_the_options_of_a_choice_have_plain_labels():
    choice = parse_dimension("choice(sa >> ff(8), relu, 3, 0.5)")
    assert isinstance(choice, ChoiceDimension)
    assert [option_label(option) for option in choice.options] == ["sa >> ff(8)", "relu", 3, 0.5]


def test_dimensions_are_settled_by_name_and_those_of_other_options_vanish():
    values = {"count": 2, "choice": "sa", "conv.k.2": 5, "ff.act": "gelu"}
    assert parse(SPACE).choose(values).text == "2 * (sa >> conv(k=5) >> ff(8, act=gelu))"


def test_dimensions_that_are_not_named_stay_open():
    settled = parse(SPACE).choose({"choice": "conv(k=integer(3, 40))", "conv.k": 7})
    expected = "integer(1, 4) * (conv(k=7) >> conv(k=choice(3, 5)) >> ff(8, act=choice(relu, gelu)))"
    assert settled.text == expected


def test_a_chosen_sum_joins_the_sum_around_it():
    recipe = parse("sa + choice(conv(k=3) + cgru(k=2), conv(k=3))")
    assert recipe.choose({"choice": "conv(k=3) + cgru(k=2)"}).text == "sa + conv(k=3) + cgru(k=2)"


@pytest.mark.parametrize(
    "values",
    [
        {"cont": 2},
        {"count": 5},
        {"count": 2.5},
        {"count": True},
        {"choice": "cgru"},
        {"conv.k.2": 4},
    ],
)
def test_a_value_outside_of_its_dimension_is_refused(values: dict[str, nodes.Scalar], golden: GoldenTexts):
    with pytest.raises(RecipeError) as caught:
        parse(SPACE).choose(values)
    golden([fault.message for fault in caught.value.faults])


def test_a_step_is_kept_to():
    recipe = parse("conv(k=integer(3, 9, step=2))")
    assert recipe.choose({"conv.k": 7}).text == "conv(k=7)"
    with pytest.raises(RecipeError, match="got 8"):
        recipe.choose({"conv.k": 8})


@pytest.mark.parametrize(
    ("text", "dimension"),
    [
        ("integer(3, 40)", IntegerDimension(3, 40)),
        ("integer(1, 1024, log=true)", IntegerDimension(1, 1024, log=True)),
        ("real(0, 0.5)", RealDimension(0.0, 0.5)),
        ("real(1e-4, 1e-2, log=true)", RealDimension(1e-4, 1e-2, log=True)),
        ("choice(relu, gelu)", ChoiceDimension(("relu", "gelu"))),
        ("choice(true, false)", ChoiceDimension((True, False))),
        ("choice(128, integer(256, 512))", ChoiceDimension((128, IntegerDimension(256, 512)))),
        ("choice(sa, conv(k=3) + sa)", ChoiceDimension((BlockNode("sa"), parse("conv(k=3) + sa").root))),
    ],
)
def test_a_dimension_can_be_written_by_itself(text: str, dimension: nodes.Dimension):
    assert parse_dimension(text) == dimension


@pytest.mark.parametrize(
    "text",
    [
        "sa",
        "3",
        "{k}",
        "sa >> ff(8)",
        "integer(1, 2.5)",
        "real(2, 1)",
        "choice(sa, conv(k=0))",
        "choice(relu, relu)",
        "choice(sa",
    ],
)
def test_a_wrong_dimension_says_why(text: str, golden: GoldenTexts):
    with pytest.raises(RecipeError) as caught:
        parse_dimension(text)
    golden([fault.message for fault in caught.value.faults])


def test_a_recipe_is_made_of_its_tree_alone():
    assert Recipe(BlockNode("sa")) == parse("sa")
