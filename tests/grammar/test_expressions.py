"""Recipes as Python expressions: the same trees and messages as for texts."""

from __future__ import annotations

import copy
import inspect
import pickle

import numpy as np
import pytest

from activemem import (
    all_attn,
    block,
    cgru,
    choice,
    conv,
    each,
    ff,
    highway_conv,
    hole,
    integer,
    persistent_conv,
    real,
    sa,
    tied,
)
from activemem.grammar import RecipeError, parse

from ..golden import GoldenTexts

SAME = [
    (sa, "sa"),
    (sa(), "sa"),
    (sa(4), "sa(heads=4)"),
    (sa(head_width=32, heads=4), "sa(heads=4, head_width=32)"),
    (conv(20), "conv(k=20)"),
    (conv(k=3, act="gelu"), "conv(k=3, act=gelu)"),
    (sa + conv(k=3), "sa + conv(k=3)"),
    (sa + conv(k=3) + cgru(k=2), "sa + conv(k=3) + cgru(k=2)"),
    (sa + (conv(k=3) + cgru(k=2)), "sa + conv(k=3) + cgru(k=2)"),
    (sa + conv(k=3) >> ff(8), "sa + conv(k=3) >> ff(8)"),
    (sa + (conv(k=3) >> ff(8)), "sa + (conv(k=3) >> ff(8))"),
    (sa >> (ff(8) >> ff(9)), "sa >> ff(8) >> ff(9)"),
    (4 * sa + conv(k=3), "4 * sa + conv(k=3)"),
    (4 * (sa + conv(k=3)), "4 * (sa + conv(k=3))"),
    (2 * (3 * sa), "2 * (3 * sa)"),
    (each(2, choice(sa, conv(k=3))), "choice(sa, conv(k=3)) >> choice(sa, conv(k=3))"),
    (4 * (sa + highway_conv(k=20) >> ff(512)), "4 * (sa + highway_conv(k=20) >> ff(512))"),
    (
        2 * (conv(k=20) >> ff(1024)) >> 6 * (sa >> ff(1024)),
        "2 * (conv(k=20) >> ff(1024)) >> 6 * (sa >> ff(1024))",
    ),
    (tied(4 * (sa >> ff(8))) >> ff(9), "tied(4 * (sa >> ff(8))) >> ff(9)"),
    (4 * (hole("mixer") >> ff(hole("filter"))), "4 * ({mixer} >> ff({filter}))"),
    (hole("n") * (hole("mixer") + sa), "{n} * ({mixer} + sa)"),
    (choice(sa, conv(k=integer(3, 40))) >> ff(8), "choice(sa, conv(k=integer(3, 40))) >> ff(8)"),
    (choice(hole("a"), hole("b")) >> ff(8), "choice({a}, {b}) >> ff(8)"),
    (conv(k=integer(3, 40, step=2)), "conv(k=integer(3, 40, step=2))"),
    (conv(k=integer(3, 40, log=True)), "conv(k=integer(3, 40, log=true))"),
    (conv(k=choice(3, 20, integer(30, 40))), "conv(k=choice(3, 20, integer(30, 40)))"),
    (conv(k=3, act=choice("relu", "gelu")), "conv(k=3, act=choice(relu, gelu))"),
    (integer(1, 8) * sa, "integer(1, 8) * sa"),
    (choice(2, 4) * (sa >> ff(8)), "choice(2, 4) * (sa >> ff(8))"),
    (parse("sa + conv(k=3)") >> ff(8), "sa + conv(k=3) >> ff(8)"),
    (block("persistent_conv")(k=3) >> block("sa"), "persistent_conv(k=3) >> sa"),
]


@pytest.mark.parametrize(("expression", "text"), SAME, ids=[text for _, text in SAME])
def test_an_expression_is_the_recipe_of_its_text(expression, text: str):
    recipe = parse(text)
    assert (expression.root, expression.text, expression.id) == (recipe.root, text, recipe.id)
    assert expression == recipe
    assert hash(expression) == hash(recipe)
    assert repr(expression) == text
    assert parse(expression) is expression


@pytest.mark.usefixtures("more_blocks")
def test_truth_values_real_numbers_and_recipes_are_arguments_too():
    blend, pair = block("blend"), block("pair")
    assert blend(rate=1, gated=True).text == "blend(rate=1.0, gated=true)"
    assert blend(real(1e-4, 1, log=True)).text == "blend(rate=real(0.0001, 1.0, log=true))"
    assert pair(sa >> ff(8), second=4 * sa).text == "pair(first=sa >> ff(8), second=4 * sa)"
    assert pair("sa + conv(k=3)", "{b}").text == "pair(first=sa + conv(k=3), second={b})"


class Seven(float):
    """A number class like numpy's, with another repr."""

    def __index__(self) -> int:
        return 7

    def __repr__(self) -> str:
        return "Seven()"


def test_numbers_of_other_libraries_are_numbers():
    class Index:
        __index__ = Seven.__index__

    assert conv(k=Index()).text == "conv(k=7)"  # pyright: ignore[reportArgumentType] -- what is tested
    assert real(0, Seven(7.5)).operand_text() == "real(0.0, 7.5)"
    assert real(np.float32(0.5), 1).operand_text() == "real(0.5, 1.0)"
    assert parse("conv(k={k})").fill({"k": np.int64(7)}).text == "conv(k=7)"


WRONG = [
    (lambda: sa(head=8), "sa(head=8)"),
    (lambda: sa(1, 2, 3), "sa(1, 2, 3)"),
    (lambda: conv(k=0), "conv(k=0)"),
    (lambda: conv(k=2.5), "conv(k=2.5)"),
    (lambda: conv(k=float("inf")), "conv(k=inf)"),
    (lambda: conv(k=True), "conv(k=true)"),
    (lambda: conv(k=3, act="gleu"), "conv(k=3, act=gleu)"),
    (lambda: conv(k=3, act="relu)"), 'conv(k=3, act="relu)")'),
    (lambda: ff(sa), "ff(sa)"),
    (lambda: conv(), "conv()"),
    (lambda: conv + sa, "conv + sa"),
    (lambda: sa >> conv, "sa >> conv"),
    (lambda: parse(conv), "conv"),
    (lambda: choice(sa, conv), "choice(sa, conv)"),
    (lambda: sa + 3, "sa + 3"),
    (lambda: 3 >> sa, "3 >> sa"),
    (lambda: sa * 4, "sa * 4"),
    (lambda: sa * sa, "sa * sa"),
    (lambda: 0 * sa, "0 * sa"),
    (lambda: 0.5 * sa, "0.5 * sa"),
    (lambda: True * sa, "true * sa"),
    (lambda: integer(1, 8) + sa, "integer(1, 8) + sa"),
    (lambda: tied(sa), "tied(sa)"),
    (lambda: tied(3), "tied(3)"),
    (lambda: each(0, sa), "each(0, sa)"),
    (lambda: each(2, 3), "each(2, 3)"),
    (lambda: hole("_n"), "{_n}"),
    (lambda: choice(sa, 3), "choice(sa, 3)"),
    (lambda: choice(sa, sa), "choice(sa, sa)"),
    (lambda: block("highway_cnv"), "highway_cnv"),
    (lambda: 20_000 * sa, "20000 * sa"),
]


@pytest.mark.parametrize(("expression", "text"), WRONG, ids=[text for _, text in WRONG])
def test_a_wrong_expression_gets_the_message_of_its_text(expression, text: str):
    with pytest.raises(RecipeError) as caught:
        expression()
    with pytest.raises(RecipeError) as expected:
        parse(text)
    assert str(caught.value) == str(expected.value)


DIMENSIONS = [
    (lambda: integer(3, 1), "integer(3, 1)"),
    (lambda: integer(1, 8, step=0), "integer(1, 8, step=0)"),
    (lambda: real(0, 1, log=True), "real(0, 1, log=true)"),
    (lambda: choice(), "choice()"),
    (lambda: choice(1, 1), "choice(1, 1)"),
    (lambda: hole("a} + {b"), "{a} + {b}"),
    (lambda: block("sa + sa"), "sa + sa"),
]


@pytest.mark.parametrize(("expression", "text"), DIMENSIONS, ids=[text for _, text in DIMENSIONS])
def test_parts_that_are_no_recipe_by_themselves_are_checked_at_once(
    expression, text: str, golden: GoldenTexts
):
    with pytest.raises(RecipeError) as caught:
        expression()
    assert caught.value.text == text
    golden([fault.message for fault in caught.value.faults])


def test_an_expression_without_a_text_is_a_type_error(golden):
    with golden.raises(TypeError):
        conv(k=None)  # pyright: ignore[reportArgumentType] -- what is tested
    with pytest.raises(TypeError, match=r"^unsupported operand type\(s\) for \+: 'BlockRecipe' and 'str'$"):
        sa + "conv(k=3)"  # pyright: ignore[reportOperatorIssue] -- what is tested


def test_expressions_fill_holes():
    recipe = parse("{n} * ({mixer} >> ff({filter}))")
    assert recipe.fill({"mixer": sa + conv(k=3), "n": integer(1, 4), "filter": hole("f")}).text == (
        "integer(1, 4) * (sa + conv(k=3) >> ff({f}))"
    )


@pytest.mark.parametrize("each", [sa, conv, sa(heads=4) >> ff(8), hole("a"), integer(1, 3)], ids=repr)
def test_expressions_can_be_pickled_and_copied(each):
    for other in (pickle.loads(pickle.dumps(each)), copy.deepcopy(each)):
        assert other == each
        assert repr(other) == repr(each)
    assert type(pickle.loads(pickle.dumps(sa))) is type(sa)


def test_a_pickle_of_a_recipe_holds_its_text_alone():
    assert parse("sa>>ff( 8)").__reduce__() == (parse, ("sa >> ff(8)",))


def test_consoles_see_the_parameters_of_a_block():
    assert str(inspect.signature(sa)).startswith("(heads=8, head_width=64, pos='none', span=0, ")
    assert str(inspect.signature(conv)) == "(k, act='relu')"


def test_persistent_convolutions_of_one_kernel_are_one_expression():
    assert persistent_conv(k=3) + sa == sa + persistent_conv(3)


def test_a_parameter_may_be_called_self():
    written = all_attn(N=4, self=True)
    assert written.text == "all_attn(N=4, self=true)"
