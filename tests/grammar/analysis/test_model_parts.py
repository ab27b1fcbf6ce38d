"""Parts of whole models: their names, and sums of their numbers."""

from __future__ import annotations

import re

import pytest

from activemem.grammar import UNBOUNDED, ModelPart, PartKind, Reach, analyse

from ...quick_cases import one_in

RECIPES = (
    "seq2seq(lstm, lstm)",
    "seq2seq(gru(layers=2), gru(layers=2), attention=bahdanau)",
    "seq2seq(lstm(layers=2), lstm(layers=2), attention=luong, attend=inputs, positions=3)",
    "seq2seq(sa(heads=2, head_width=3) >> ff(8), gru, attention=luong)",
    "seq2seq(gru, 2 * (sa(heads=2, head_width=3) >> ff(8)))",
    "seq2seq(2 * (conv(k=3) >> ff(8)), tied(3 * (sa(heads=1, head_width=4) + cgru(k=3) >> ff(8))))",
    "seq2seq(persistent_conv(k=3) >> ff(8), persistent_conv(k=3) >> lstm >> persistent_conv(k=3))",
    "seq2seq(4 * (sa >> ff(9)), sa >> 3 * (tied(2 * (sa + conv(k=2))) >> ff(9)) >> conv(k=3))",
    "seq2seq(ff(5), sa + (conv(k=3) >> sa >> ff(7)))",
    *(
        f"{name}({words})"
        for name in ("neural_gpu", "markov_neural_gpu", "extended_neural_gpu")
        for words in ("layers=1", "layers=3, width=2, maps=7", "kernel=4")
    ),
    "extended_neural_gpu(maps=6, tape=all)",
)

SETTINGS = (
    {},
    {"norm": "post", "dropout": 0.0},
    {"norm": "none", "attention_dropout": 0.2, "causal": True},
    {"position": "none", "embedding_dropout": 0.1},
)

FIGURES = ("parameters", "flops", "state", "window")


def whole(text: str, **settings) -> ModelPart:
    """Return the tree of a model with a width of 12, on sequences of 7."""
    return analyse(text, d_model=12, length=7, vocab=9, source_vocab=11, **settings).tree


def body(tree: ModelPart) -> ModelPart:
    """Return the transducer between the embeddings and the output."""
    (found,) = (part for part in tree.parts if part.kind is PartKind.TRANSDUCER)
    return found


def figures(part: ModelPart) -> tuple[int, ...]:
    return tuple(getattr(part, name) for name in FIGURES)


def summed(part: ModelPart) -> tuple[int, ...]:
    """Return the numbers of a part as the sum over its own parts, including copies."""
    tied, count = None, 1
    if part.kind is PartKind.COPIES:
        found = re.fullmatch(r"(tied )?(\d+) ×", part.label)
        assert found is not None
        tied, count = found[1], int(found[2])
    inner = {name: count * sum(getattr(one, name) for one in part.parts) for name in FIGURES}
    return tuple(n // count if tied and name == "parameters" else n for name, n in inner.items())


def below(part: ModelPart) -> list[ModelPart]:
    """Return all parts with subparts, from the top."""
    return [part, *(found for one in part.parts if one.parts for found in below(one))]


def outline(part: ModelPart, depth: int = 0) -> list[str]:
    lines = [f"{'  ' * depth}{part.label}: {part.parameters}"]
    return lines + [line for one in part.parts for line in outline(one, depth + 1)]


@pytest.mark.parametrize(
    ("text", "settings"),
    one_in(
        2,
        [(text, SETTINGS[number % len(SETTINGS)]) for number, text in enumerate(RECIPES)]
        + [(RECIPES[5], settings) for settings in SETTINGS if settings != SETTINGS[5 % len(SETTINGS)]],
    ),
)
def test_parts_add_up_to_what_they_are_parts_of(text: str, settings):
    compared = 0
    for part in below(whole(text, **settings)):
        if part.kind is PartKind.SUM:  # it has a normalisation and an input besides
            assert all(own >= inner for own, inner in zip(figures(part), summed(part), strict=True))
        else:
            assert (part.label, figures(part)) == (part.label, summed(part))
            compared += 1
    assert compared >= 1


@pytest.mark.parametrize("text", RECIPES)
def test_parts_follow_parts_that_are_before_them(text: str):
    tree = whole(text)
    known = {""} | {part.label for part in tree.parts if part.predecessors == ()}
    assert len(known) == 3
    for part in body(tree).parts:
        assert set(part.predecessors or ()) <= known
        for inner in below(part):
            assert all(set(one.predecessors or ()) <= known for one in inner.parts)
        known.add(part.label)


def test_recurrent_ones_are_joined_by_their_attention():
    cell = 2 * (6 * 12 * 12 + 4 * 12)
    assert outline(whole("seq2seq(gru(layers=2), gru(layers=2), attention=bahdanau)")) == [
        f"model: {11 * 12 + 9 * 12 + 2 * cell + 2 * 144 + 12 + 25 * 9}",
        f"  source embedding: {11 * 12}",
        f"  target embedding: {9 * 12}",
        f"  seq2seq(gru(layers=2), gru(layers=2), attention=bahdanau): {2 * cell + 2 * 144 + 12}",
        f"    encoder: {cell}",
        f"      gru(layers=2): {cell}",
        f"    decoder: {cell}",
        f"      gru(layers=2): {cell}",
        f"    bahdanau attention: {2 * 144 + 12}",
        "    dropout: 0",
        f"  output: {25 * 9}",
    ]


def test_a_decoder_attends_to_the_source_after_each_sub_layer_that_mixes():
    text = "seq2seq(2 * sa(heads=2, head_width=3), 3 * (sa(heads=2, head_width=3) >> ff(8)) >> conv(k=3))"
    sa, norm = 4 * 12 * 6, 2 * 12
    feeding, crossing, wide = 12 * 8 + 8 + 8 * 12 + 12, 4 * 12 * 6, 4 * 12 * 512
    attention = 3 * (crossing + norm) + wide + norm
    layers = 3 * (sa + feeding + 2 * norm)
    assert outline(body(whole(text)))[1:] == [
        f"  encoder: {2 * (sa + norm) + norm}",
        f"    2 ×: {2 * (sa + norm)}",
        f"      sa(heads=2, head_width=3): {sa + norm}",
        f"    final norm: {norm}",
        f"  decoder: {layers + (3 * 144 + 12 + norm) + attention + norm}",
        f"    3 ×: {layers}",
        f"      sa(heads=2, head_width=3): {sa + norm}",
        f"      ff(8): {feeding + norm}",
        f"    conv(k=3): {3 * 144 + 12 + norm}",
        f"    attention to the source: {attention}",
        f"    final norm: {norm}",
    ]


def test_generation_keeps_nothing_of_an_encoder():
    encoder, decoder = body(whole("seq2seq(sa + conv(k=3), sa + conv(k=3))")).parts
    assert [(part.state, part.window) for part in below(encoder)] == [(0, 0)] * 2
    assert (decoder.state, decoder.window) == (2 * 2 * 512, 2 * 12)


def test_an_encoder_sees_both_sides_and_a_decoder_what_was_written():
    encoder, decoder = body(whole("seq2seq(conv(k=3), conv(k=3))", causal=True)).parts
    assert encoder.parts[0].reach == Reach(left=1, right=1)
    conv, attention, _ = decoder.parts
    assert conv.reach == Reach(left=2, right=0)
    assert attention.reach == Reach(left=UNBOUNDED, right=UNBOUNDED)
