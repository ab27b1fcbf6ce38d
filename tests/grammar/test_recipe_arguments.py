"""Blocks with recipes as arguments, such as whole models: parsing, checks, names, search and costs."""

from __future__ import annotations

import pytest

from activemem.grammar import (
    UNBOUNDED,
    CostContext,
    Parameter,
    Reach,
    RecipeError,
    Role,
    Settings,
    Space,
    Spec,
    analyse,
    parse,
)
from activemem.grammar.nodes import BlockNode, ChoiceDimension, IntegerDimension
from activemem.grammar.vocabulary.spec import SPECS

from ..golden import GoldenTexts
from ..registry_entries import replace_entry

RECIPE = {"kind": "recipe", "positional": True, "meaning": ""}


def _reach(_settings: Settings, _context: CostContext) -> Reach:
    return Reach(left=0, right=UNBOUNDED)


@pytest.fixture(autouse=True)
def seq2seq(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register `seq2seq(encoder, decoder, attention=none, layers=1)` during a test."""
    spec = Spec(
        name="seq2seq",
        role=Role.TRANSDUCER,
        parameters=(
            Parameter(name="encoder", **RECIPE),
            Parameter(name="decoder", default=BlockNode("sa"), **RECIPE),
            Parameter(name="attention", kind="word", default="none", words=("none", "luong"), meaning=""),
            Parameter(name="layers", kind="integer", default=1, low=1, high=9, meaning=""),
        ),
        summary="",
        equation="",
        source="",
        reach=_reach,
        owner="the tests",
    )
    replace_entry(SPECS, spec.name, spec)


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("seq2seq(ff(8), conv(3))", "seq2seq(ff(8), conv(k=3))"),
        ("seq2seq(ff(8), sa)", "seq2seq(ff(8))"),
        ("seq2seq(ff(8), decoder=sa(heads=8))", "seq2seq(ff(8))"),
        ("seq2seq(decoder=ff(8), encoder=sa, attention=luong)", "seq2seq(sa, ff(8), attention=luong)"),
        ("seq2seq((sa >> ff(8)), (2 * (sa + sa)))", "seq2seq(sa >> ff(8), 2 * (sa + sa))"),
        ("seq2seq(seq2seq(sa, ff(8)), tied(2*sa))", "seq2seq(seq2seq(sa, ff(8)), tied(2 * sa))"),
    ],
)
def test_recipes_as_arguments_have_one_canonical_text(written: str, canonical: str):
    assert parse(written).text == canonical
    assert parse(canonical).root == parse(written).root


def test_a_sum_inside_an_argument_is_the_same_in_any_order_and_arguments_are_not():
    assert parse("seq2seq(sa + ff(8), ff(8))") == parse("seq2seq(ff(8) + sa, ff(8))")
    assert parse("seq2seq(sa, ff(8))") != parse("seq2seq(ff(8), sa)")


def test_holes_inside_of_arguments_and_for_them_are_filled():
    recipe = parse("seq2seq({encoder}, conv(k={k}) + {encoder}, layers={n})")
    assert recipe.holes == ("encoder", "k", "n")
    filled = recipe.fill({"encoder": "sa >> ff(8)", "k": 3, "n": 2})
    assert filled.text == "seq2seq(sa >> ff(8), conv(k=3) + (sa >> ff(8)), layers=2)"


SPACE = "seq2seq(choice(ff(8), conv(k=integer(3, 5))), choice(sa, 2 * sa), layers=integer(1, 2))"


def test_dimensions_inside_of_arguments_and_for_them_are_named_and_settled():
    recipe = parse(SPACE)
    assert recipe.dimensions == (
        (
            "seq2seq.encoder",
            ChoiceDimension((parse("ff(8)").root, BlockNode("conv", (("k", IntegerDimension(3, 5)),)))),
        ),
        ("conv.k", IntegerDimension(3, 5)),
        ("seq2seq.decoder", ChoiceDimension((BlockNode("sa"), parse("2 * sa").root))),
        ("seq2seq.layers", IntegerDimension(1, 2)),
    )
    values = {
        "seq2seq.encoder": "conv(k=integer(3, 5))",
        "conv.k": 4,
        "seq2seq.decoder": "sa",
        "seq2seq.layers": 1,
    }
    assert recipe.choose(values).text == "seq2seq(conv(k=4))"


def test_a_space_inside_of_arguments_is_counted_and_listed():
    members = [member.text for member in Space(SPACE)]
    assert len(members) == len(set(members)) == 4 * 2 * 2
    assert members[:2] == ["seq2seq(ff(8))", "seq2seq(ff(8), layers=2)"]


@pytest.mark.parametrize(
    "text",
    [
        "seq2seq()",
        "seq2seq(3)",
        "seq2seq(relu)",
        "seq2seq(integer(1, 3))",
        "seq2seq(sa + ff(0), cnv(k=3), attention=luon)",
        "sa + seq2seq(sa)",
        "seq2seq(9999 * (sa >> sa))",
    ],
)
def test_faults_inside_of_an_argument_are_reported(text: str, golden: GoldenTexts):
    with pytest.raises(RecipeError) as caught:
        parse(text)
    golden([fault.message for fault in caught.value.faults])


def test_an_open_argument_is_not_analysed(golden):
    with pytest.raises(RecipeError) as caught:
        analyse("seq2seq({encoder}, choice(sa, ff(8)))", d_model=8, length=4, vocab=3)
    golden([fault.message for fault in caught.value.faults])
