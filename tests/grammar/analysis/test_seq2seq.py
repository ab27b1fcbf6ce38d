"""Recurrent blocks and encoder-decoders: their texts, faults and hand-computed costs."""

from __future__ import annotations

import pytest

from activemem.grammar import UNBOUNDED, PartKind, Reach, RecipeError, Space, analyse, parse
from activemem.grammar.seq2seq import cross_attention_width

from ...golden import GoldenTexts


def parameters(text: str, *, d_model: int, **settings) -> int:
    return analyse(text, d_model=d_model, length=1, vocab=1, **settings).parameters


@pytest.mark.parametrize(
    "text",
    [
        "seq2seq(gru(layers=2), gru(layers=2), attention=bahdanau)",
        "seq2seq(lstm, lstm, attention=luong, attend=inputs)",
        "seq2seq(lstm, lstm)",
        "seq2seq(lstm, lstm, attention=bahdanau, attend=inputs, positions=20)",
        "seq2seq(4 * (sa >> ff(512)), 4 * (sa >> ff(512)))",
        "seq2seq(4 * ({mixer} >> ff(512)), 4 * ({mixer} >> ff(512)))",
        "seq2seq({encoder}, {decoder}, attention={attention})",
        "seq2seq(lstm(layers={n}), lstm(layers={n}))",
        "seq2seq(choice(lstm, sa), lstm, attention=choice(luong, bahdanau))",
        "seq2seq(sa, 2 * (choice(sa, lstm) + ff(8)))",
        "seq2seq(2 * lstm, 2 * (gru >> ff(8)))",
        "4 * (lstm(layers=2) + sa >> ff(512))",
    ],
)
def test_a_recipe_is_its_own_canonical_text(text: str):
    assert parse(text).text == text


@pytest.mark.parametrize(
    "text",
    [
        "seq2seq(lstm, lstm, attend=inputs)",
        "seq2seq(lstm, lstm, attention=luong, positions=20)",
        "seq2seq(lstm, lstm, feed=true)",
        "seq2seq(sa, lstm, attention=luong, units=9)",
        "seq2seq(gru, gru, attention=luong, attend=inputs, units=9)",
        "seq2seq(sa, 2 * (sa >> ff(8)), attention=luong)",
        "seq2seq(lstm, gru)",
        "seq2seq(gru(layers=2), gru, attention=luong)",
        "seq2seq(sa >> ff(8), lstm)",
        "seq2seq(lstm(layers=integer(1, 2)), lstm(layers=integer(1, 2)))",
        "seq2seq(choice(lstm, sa), lstm)",
        "seq2seq(sa, 2 * ff(8))",
        "seq2seq(sa, choice(sa, ff(9)) + ff(8) >> ff(8))",
        "seq2seq(sa >> mean_pool, sa)",
        "seq2seq(sa, seq2seq(sa, sa))",
    ],
)
def test_arguments_that_do_not_go_together_are_a_fault(text: str, golden: GoldenTexts):
    with pytest.raises(RecipeError) as caught:
        parse(text)
    golden([fault.message for fault in caught.value.faults])


def test_checks_that_a_hole_prevents_are_made_once_it_is_filled(golden):
    recipe = parse("seq2seq({encoder}, lstm)")
    assert recipe.fill({"encoder": "lstm"}).text == "seq2seq(lstm, lstm)"
    with golden.raises(RecipeError):
        recipe.fill({"encoder": "sa"})


def test_encoder_decoders_make_a_space():
    members = [
        member.text for member in Space("seq2seq(lstm, lstm, attention=choice(none, luong, bahdanau))")
    ]
    assert members == [
        "seq2seq(lstm, lstm)",
        "seq2seq(lstm, lstm, attention=luong)",
        "seq2seq(lstm, lstm, attention=bahdanau)",
    ]


@pytest.mark.parametrize(
    ("cell", "each"), [("lstm", 2 * 4 * 50 * 50 + 4 * 50), ("gru", 2 * 3 * 50 * 50 + 4 * 50)]
)
def test_a_recurrent_layer_has_maps_of_input_and_state_and_no_bias_twice(cell: str, each: int):
    norms, around = 2 * 2 * 50, 2 * 50 + 1
    assert parameters(cell, d_model=50) == each + norms + around
    assert parameters(f"{cell}(layers=3)", d_model=50) == 3 * each + norms + around


def test_the_five_models_of_the_paper_on_memory_have_these_parameters():
    """Hidden and embedding size 50, V = 128 plus padding, start and end: Section 3 of the paper."""
    d, vocab, cells = 50, 131, 2 * (8 * 50 * 50 + 4 * 50)
    joint = {
        "none": 0,
        "luong": d * d,
        "bahdanau": 2 * d * d + d,
        "luong, attend=inputs": (d + 10) * d,
        "bahdanau, attend=inputs": (d + 10) * d + d * d + d,
    }
    for words, extra in joint.items():
        found = analyse(f"seq2seq(lstm, lstm, attention={words})", d_model=d, length=18, vocab=vocab)
        outputs = (d if words == "none" else 2 * d) * vocab + vocab
        assert found.parameters == 2 * vocab * d + cells + extra + outputs


def test_the_gru_with_attention_of_the_neural_gpu_paper_has_these_parameters():
    """Two layers of 1,024 units each, embeddings of 512, and 32,000 symbols: section 3 of the paper."""
    text = "seq2seq(gru(layers=2), gru(layers=2), attention=bahdanau, feed=true, units=1024)"
    d, units, vocab = 512, 1024, 32_000
    layers = 3 * units * (d + units) + 6 * units**2 + 8 * units
    attention, merge = 2 * units**2 + units, (d + units) * d + d
    ends = 2 * vocab * d + (2 * units + 1) * vocab
    found = analyse(text, d_model=d, length=1, vocab=vocab)
    assert found.parameters == 2 * layers + attention + merge + ends


def test_operations_are_counted_at_a_source_and_a_target_of_the_length():
    found = analyse("seq2seq(gru, gru, attention=bahdanau)", d_model=10, length=7, vocab=3)
    cells = 2 * 7 * 2 * 6 * 100
    attention = 2 * 7 * 100 + 2 * 7 * 100 + 2 * 49 * 10 + 2 * 49 * 10  # keys, queries, scores, means
    assert found.flops == cells + attention + 2 * 7 * 20 * 3


def test_an_attention_to_the_source_is_after_each_layer_that_mixes():
    def cost(text: str) -> int:
        (found,) = (
            part
            for part in analyse(text, d_model=16, vocab=3, dropout=0.0, length=5).tree.parts
            if part.kind is PartKind.TRANSDUCER
        )
        return found.parameters

    base = "seq2seq(sa(heads=2, head_width=4), {})"
    one = cost(base.format("sa(heads=2, head_width=4)"))
    crossing = 4 * 16 * 8 + 2 * 16
    stack = 2 * 16 + 4 * 16 * 8 + 2 * 16  # a norm, the projections, the last norm
    assert one == 2 * stack + crossing
    layer = 2 * 16 + 4 * 16 * 8 + crossing
    assert cost(base.format("3 * sa(heads=2, head_width=4)")) == one + 2 * layer
    assert cost(base.format("tied(3 * sa(heads=2, head_width=4))")) == one


def test_the_width_of_attentions_to_the_source_is_counted_without_writing_repeats_out():
    root = parse("3 * (tied(2 * (sa(heads=2) >> ff(8))) >> conv(k=3) >> ff(8))").root
    assert cross_attention_width(root) == 3 * 2 * 64 + 3 * 8 * 64


@pytest.mark.parametrize("causal", [False, True])
def test_a_recurrent_block_sees_all_that_came_before(causal: bool):
    found = analyse("lstm", d_model=4, length=9, vocab=3, causal=causal)
    assert found.reach == Reach(left=UNBOUNDED, right=0)
    assert (found.state, found.window) == (0, 8)
