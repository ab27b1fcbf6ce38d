"""Costs and reach of recipes, against hand-computed numbers."""

from __future__ import annotations

import math

import pytest

from activemem.grammar import Analysis, ModelPart, Reach, RecipeError, analyse, parse

WIDTH, LENGTH, VOCAB = 128, 40, 20
EMBEDDING, NORM, OUTPUT = 20 * 128, 2 * 128, 128 * 20 + 20
SA, CONV_20, FF_512 = 4 * 128 * 512, 20 * 128 * 128 + 128, 128 * 512 + 512 + 512 * 128 + 128


def _analyse(text: str, *, causal: bool = False, norm="pre", length: int = LENGTH) -> Analysis:
    return analyse(parse(text), d_model=WIDTH, length=length, vocab=VOCAB, causal=causal, norm=norm)


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("sa", NORM + SA),
        ("sa(heads=4, head_width=32)", NORM + 4 * 128 * 128),
        ("ff(512)", NORM + FF_512),
        ("conv(k=20)", NORM + CONV_20),
        ("highway_conv(k=20)", NORM + 2 * CONV_20),
        ("cgru(k=20)", NORM + 3 * CONV_20),
        ("persistent_conv(k=20)", NORM + CONV_20 + 19 * 128),
        ("sa + conv(k=20)", NORM + SA + CONV_20),
        ("sa >> ff(512)", NORM + SA + NORM + FF_512),
        ("4 * (sa + conv(k=20) >> ff(512))", 4 * (NORM + SA + CONV_20 + NORM + FF_512)),
        ("sa + (conv(k=20) >> ff(512))", NORM + SA + NORM + CONV_20 + NORM + FF_512),
        ("sa + 2 * ff(512)", NORM + SA + 2 * (NORM + FF_512)),
        ("tied(4 * (sa >> ff(512)))", NORM + SA + NORM + FF_512),
        ("3 * tied(4 * sa)", 3 * (NORM + SA)),
        ("tied(4 * (2 * sa))", 2 * (NORM + SA)),
        ("4 * persistent_conv(k=20)", 4 * (NORM + CONV_20) + 19 * 128),
        (
            "persistent_conv(k=20) + persistent_conv(k=20, act=gelu) >> persistent_conv(k=1)",
            NORM + 2 * CONV_20 + 19 * 128 + NORM + 128 * 128 + 128,
        ),
    ],
)
def test_parameters_are_those_counted_by_hand(text: str, body: int):
    assert _analyse(text).parameters == EMBEDDING + body + NORM + OUTPUT
    assert _analyse(text, norm="post").parameters == EMBEDDING + body + OUTPUT


@pytest.mark.parametrize(
    ("text", "causal", "reach"),
    [
        ("ff(8)", False, Reach(left=0, right=0)),
        ("sa", False, Reach(left=math.inf, right=math.inf)),
        ("sa", True, Reach(left=math.inf, right=0)),
        ("conv(k=1)", False, Reach(left=0, right=0)),
        ("conv(k=20)", False, Reach(left=9, right=10)),
        ("conv(k=3)", False, Reach(left=1, right=1)),
        ("conv(k=20)", True, Reach(left=19, right=0)),
        ("persistent_conv(k=20)", False, Reach(left=9, right=10)),
        ("highway_conv(k=20)", False, Reach(left=9, right=10)),
        ("cgru(k=20)", False, Reach(left=18, right=20)),
        ("cgru(k=20)", True, Reach(left=38, right=0)),
        ("conv(k=20) + conv(k=3)", False, Reach(left=9, right=10)),
        ("conv(k=20) + (conv(k=19) >> ff(8) >> conv(k=3))", False, Reach(left=10, right=10)),
        ("sa + conv(k=20)", False, Reach(left=math.inf, right=math.inf)),
        ("4 * (conv(k=20) >> ff(512))", False, Reach(left=36, right=40)),
        ("8 * (conv(k=20) >> ff(512))", True, Reach(left=152, right=0)),
        ("tied(4 * (conv(k=20) >> ff(512)))", False, Reach(left=36, right=40)),
        ("2 * (3 * conv(k=3)) >> conv(k=5)", False, Reach(left=8, right=8)),
        ("10000 * conv(k=1024)", True, Reach(left=10_230_000, right=0)),
    ],
)
def test_reach_is_exact_on_each_side(text: str, causal: bool, reach: Reach):
    assert _analyse(text, causal=causal).reach == reach


HEAD = 2 * 40 * 128 * 20  # the output's operations


@pytest.mark.parametrize(
    ("text", "causal", "flops"),
    [
        ("sa", False, 2 * 40 * 4 * 128 * 512 + 4 * 40 * 40 * 512),
        ("sa", True, 2 * 40 * 4 * 128 * 512 + 4 * 40 * 40 * 512),
        ("ff(512)", False, 2 * 40 * 2 * 128 * 512),
        ("conv(k=20)", False, 2 * 40 * 20 * 128 * 128),
        ("conv(k=20)", True, 2 * 40 * 20 * 128 * 128),
        ("conv(k=100)", False, 2 * 40 * (39 + 1 + 39) * 128 * 128),
        ("conv(k=100)", True, 2 * 40 * 40 * 128 * 128),
        ("persistent_conv(k=20)", False, 2 * 40 * 20 * 128 * 128),
        ("highway_conv(k=20)", False, 2 * (2 * 40 * 20 * 128 * 128)),
        ("cgru(k=20)", False, 3 * (2 * 40 * 20 * 128 * 128)),
        ("tied(3 * ff(512))", False, 3 * (2 * 40 * 2 * 128 * 512)),
        ("3 * (ff(512) + ff(512))", False, 6 * (2 * 40 * 2 * 128 * 512)),
    ],
)
def test_operations_are_those_counted_by_hand(text: str, causal: bool, flops: int):
    analysis = _analyse(text, causal=causal)
    assert analysis.flops == flops + HEAD
    assert analysis.flops_per_token == (flops + HEAD) / 40
    assert analysis.training_flops == 3 * (flops + HEAD)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("text", "state", "window"),
    [
        ("sa", 2 * 512, 0),
        ("sa(heads=2, head_width=16)", 2 * 32, 0),
        ("ff(512)", 0, 0),
        ("conv(k=1)", 0, 0),
        ("conv(k=20)", 0, 19 * 128),
        ("persistent_conv(k=20)", 0, 19 * 128),
        ("highway_conv(k=20)", 0, 19 * 128),
        ("cgru(k=20)", 0, 2 * 19 * 128),
        ("4 * (sa + conv(k=20) >> ff(512))", 4 * 2 * 512, 4 * 19 * 128),
        ("tied(4 * (sa + conv(k=20) >> ff(512)))", 4 * 2 * 512, 4 * 19 * 128),
    ],
)
def test_generation_keeps_a_state_of_each_token_and_a_window(
    text: str, state: int, window: int, causal: bool
):
    analysis = _analyse(text, causal=causal)
    assert (analysis.state, analysis.window) == (state, window)


@pytest.mark.parametrize(
    ("text", "mask", "causal"),
    [
        ("sa >> ff(8)", True, True),
        ("sa >> ff(8)", False, False),
        ("ff(8)", False, True),
        ("conv(k=1) >> ff(8)", False, True),
        ("conv(k=2) >> ff(8)", False, False),
        ("3 * (conv(k=1) + conv(k=2))", False, False),
    ],
)
def test_a_recipe_is_causal_if_no_block_of_it_sees_to_the_right(text: str, mask: bool, causal: bool):
    assert _analyse(text, causal=mask).causal is causal


PLANE = LENGTH * WIDTH
AROUND = 2 * LENGTH + (PLANE + 2 * LENGTH) + PLANE + LENGTH * (VOCAB + 2)  # tokens, final norm, output


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("ff(512)", 2 * PLANE + 2 * LENGTH + LENGTH * 512),
        ("ff(512, act=gelu)", 2 * PLANE + 2 * LENGTH + 2 * LENGTH * 512),
        ("conv(k=3)", PLANE + 2 * LENGTH + (LENGTH + 2) * WIDTH + PLANE),
        ("2 * ff(512)", 2 * (2 * PLANE + 2 * LENGTH + LENGTH * 512)),
        ("tied(2 * ff(512))", 2 * (2 * PLANE + 2 * LENGTH + LENGTH * 512)),
        ("ff(512) + ff(256)", 2 * PLANE + 2 * LENGTH + LENGTH * (512 + 256)),
    ],
)
def test_the_stated_memory_is_that_counted_by_hand(text: str, body: int):
    analysis = analyse(parse(text), d_model=WIDTH, length=LENGTH, vocab=VOCAB, dropout=0.0)
    memory = analysis.memory(batch=32)
    assert memory.activations == pytest.approx(4 * 32 * (AROUND + body), abs=16)
    assert memory.activations == sum(part.kept for part in analysis.tree_with_memory(32).parts)
    assert memory.parameters == 16 * analysis.parameters


def test_the_padding_of_a_batch_is_kept_once():
    one, two = (_analyse("persistent_conv(k=20)").memory(batch).activations for batch in (1, 2))
    assert 2 * one - two == pytest.approx(4 * WIDTH * ((9 + 9 - 1) + (10 + 10 - 1)), abs=16)


def _outline(part: ModelPart, depth: int = 0) -> list[str]:
    lines = [f"{'  ' * depth}{part.label}: {part.parameters}"]
    return lines + [line for one in part.parts for line in _outline(one, depth + 1)]


def test_the_tree_names_every_part_with_its_parameters(golden):
    golden(_outline(_analyse("4 * (sa + persistent_conv(k=20) >> ff(512)) >> 2 * sa").tree))


def test_a_tied_repeat_of_a_sum_shows_the_sum():
    assert _outline(_analyse("tied(3 * (sa + ff(512)))").tree)[2:6] == [
        f"  tied 3 ×: {NORM + SA + FF_512}",
        f"    sa + ff(512): {NORM + SA + FF_512}",
        f"      sa: {SA}",
        f"      ff(512): {FF_512}",
    ]


def test_an_open_recipe_is_not_analysed_and_says_what_is_open(golden):
    with golden.raises(RecipeError):
        _analyse("{n} * ({mixer} + {mixer} >> ff(integer(8, 64)))")
