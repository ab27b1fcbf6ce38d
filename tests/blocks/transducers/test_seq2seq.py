"""Encoder-decoders equal plain loops over positions; initial states, sharing and attention."""

import pytest
import torch
from torch.testing import assert_close

from activemem.blocks import Context, build
from activemem.blocks.core.initialisation import initialise
from activemem.blocks.core.transducer import build_transducer_block
from activemem.blocks.testing.fixtures import (
    make_transducer,
    parse_block,
    prefix_mask,
    random_sequences,
    use_plain_operations,
)
from activemem.blocks.transducers.seq2seq import CrossAttention
from activemem.grammar import configure

from ..equations.common import norm
from .seq2seq_references import attended, crossed, layered

SOURCES, TARGETS = [6, 1, 4], [3, 5, 2]


def pair():
    return random_sequences(3, 6, seed=1), random_sequences(3, 5, seed=2)


@pytest.mark.parametrize("cell", ["lstm", "gru(layers=2)"])
@pytest.mark.parametrize(
    ("words", "positions"),
    [
        ("attention=none", None),
        ("attention=luong", 0),
        ("attention=bahdanau", 0),
        ("attention=luong, attend=inputs", 10),
        ("attention=bahdanau, attend=inputs, positions=5", 5),
    ],
)
def test_a_recurrent_encoder_decoder_equals_its_reference(cell, words, positions):
    model, (source, target) = make_transducer(f"seq2seq({cell}, {cell}, {words})"), pair()
    masks = prefix_mask(SOURCES, 6), prefix_mask(TARGETS, 5)
    with torch.no_grad():
        found = model(source, target, *masks)
        shares = model.alignment(source, target, masks[0])
        for row, (n, m) in enumerate(zip(SOURCES, TARGETS, strict=True)):
            x, nothing = source[row, :n], torch.zeros_like(source[0, 0])
            starts = [[nothing] * model.encoder.layer_class.state_count for _ in model.encoder.layers]
            outputs, lasts = layered(model.encoder, x, starts)
            hidden, _ = layered(model.decoder.block, target[row, :m], lasts)
            if positions is None:
                assert_close(found[row, :m], hidden)
                continue
            for place, h in enumerate(hidden):
                values = x if positions else outputs
                weights, mean = attended(model.decoder.alignment, h, values, positions)
                assert_close(found[row, place], torch.cat([mean, h]))
                assert_close(shares[row, place, :n], weights)
                assert (shares[row, place, n:] == 0).all()
    assert (shares is None) == (positions is None)


@pytest.mark.parametrize(
    ("layer", "heads"),
    [
        ("conv(k=3)", (8, 64)),
        ("sa(heads=3, head_width=5)", (3, 5)),
        ("(conv(k=3) + (ff(4) >> sa(heads=2)))", (2, 64)),
    ],
)
def test_the_heads_are_those_of_the_layer_or_as_many_as_those_of_sa(layer, heads):
    decoder = make_transducer(f"seq2seq(ff(4), ff(4) >> {layer})").decoder
    _, crossing = decoder.crossings
    assert isinstance(crossing, CrossAttention)
    assert (crossing.heads, crossing.queries.weight.shape[0] // crossing.heads) == heads


def test_encoder_and_decoder_share_their_padding_each_within_itself():
    text = "seq2seq(2 * persistent_conv(k=4), 2 * persistent_conv(k=4))"
    model = make_transducer(text)
    sides = [[layer.part.padding for layer in stack.body.layers] for stack in (model.encoder, model.decoder)]
    assert sides[0][0] is sides[0][1]
    assert sides[1][0] is sides[1][1]
    assert sides[0][0].right is not None
    assert sides[1][0].right is None


def test_a_decoder_after_another_encoder_begins_in_zeros():
    model, (source, target) = make_transducer("seq2seq(ff(5), gru, attention=luong)"), pair()
    nothing = torch.zeros_like(source[0, 0])
    with torch.no_grad():
        hidden, _ = layered(model.decoder.block, target[0], [[nothing]])
        assert_close(model(source, target)[0, :, 6:], hidden)


def test_a_long_source_is_attended_to_as_a_short_one():
    model = make_transducer("seq2seq(ff(5), conv(k=3))")
    source, target = random_sequences(2, 70, seed=1), random_sequences(2, 3, seed=2)
    with torch.no_grad():
        found = model(source, target, prefix_mask([70, 66], 70))
        for row, n in enumerate([70, 66]):
            known = model.encode(source[row : row + 1, :n], None).outputs[0]
            x = model.decoder.body(target[row : row + 1])[0]
            expected = crossed(model.decoder.crossings[0], x, known)
            assert_close(found[row], norm(model.decoder.norm, expected))


@pytest.mark.parametrize("fused", [True, False], ids=["kernels", "steps"])
@pytest.mark.parametrize("cell", ["lstm(layers=2)", "gru(layers=2)"])
def test_under_autocast_outputs_are_near_those_in_full_precision(cell, fused):
    text = f"seq2seq({cell}, {cell}, attention=bahdanau, attend=inputs)"
    model = make_transducer(text, dtype=torch.float32)
    source, target = (x.float() for x in pair())
    masks = prefix_mask(SOURCES, 6), prefix_mask(TARGETS, 5)
    expected = model(source, target, *masks)
    model = model if fused else use_plain_operations(model)
    with torch.autocast("cpu", torch.bfloat16):
        found = model(source, target, *masks)
    assert_close(found.float(), expected, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("text", ["seq2seq(lstm, lstm, attention=luong)", "seq2seq(sa, 1 * sa)"])
def test_the_weights_of_attention_are_dropped_only_in_training(text):

    context = Context(config=configure(d_model=6, dropout=0.0, attention_dropout=0.5, position="none"))
    model = build_transducer_block(parse_block(text), context)
    initialise(model, None)
    source, target = (x.float() for x in pair())
    assert model.eval()(source, target).equal(model(source, target))
    assert not model.train()(source, target).equal(model(source, target))


@pytest.mark.parametrize(
    "recipe", ["seq2seq(lstm, lstm, attention=bahdanau)", "seq2seq(sa(heads=2), sa(heads=2) >> ff(4))"]
)
def test_an_empty_source_and_an_empty_target_leave_all_gradients_finite(recipe):
    model = build(recipe, d_model=6, vocab=5, source_vocab=4)
    source, target = torch.tensor([[1, 2, 3], [0, 0, 0]]), torch.tensor([[0, 0], [3, 1]])
    losses = model.nll(source, target)
    losses.sum().backward()
    assert losses.isfinite().all() and not losses[0].any()
    assert all(each.grad is None or each.grad.isfinite().all() for each in model.parameters())
