"""Learned and randomised positions: equal to plain loops, separate per sequence, bounded in length."""

import pytest
import torch

from activemem.blocks import BuildError, build
from activemem.blocks.core.block import StreamState
from activemem.blocks.core.positions import PositionalEncoding, choose_positions
from activemem.blocks.testing.fixtures import make_generator
from activemem.grammar import configure

from ..equations import common as references

WIDTH, RANGE = 6, 30


def made(position, recipe="sa(heads=2, head_width=4) >> ff(5)", **settings):
    given = {"d_model": WIDTH, "vocab": 9, "dropout": 0.0, "position": position, "max_positions": RANGE}
    return build(recipe, **{**given, **settings}, generator=make_generator(0)).double().eval()


def tokens(length):
    return torch.randint(9, (2, length), generator=make_generator(1))


def test_learned_vectors_are_added_as_embeddings_are():
    model = made("learned", "ff(5)")
    x, signal = model._embed(tokens(7), 0)
    expected = (model.embedding.weight[tokens(7)] + model.positions.vectors.weight[:7]) * WIDTH**0.5
    torch.testing.assert_close(x, expected)
    assert signal is None
    torch.testing.assert_close(
        model._embed(tokens(3), 4)[0][:, 0] - model._embed(tokens(3), 0)[0][:, 0],
        ((model.positions.vectors.weight[4] - model.positions.vectors.weight[0]) * WIDTH**0.5).expand(2, -1),
    )
    assert [len(made("learned", max_positions=count).positions.vectors.weight) for count in (4, 9)] == [4, 9]


def test_a_sequence_has_as_many_positions_as_it_is_long_in_their_order():
    keys = torch.randn(RANGE, generator=make_generator(3))
    lengths = [5, 1, 8]
    chosen = choose_positions(keys, 8, torch.tensor(lengths))
    for row, length in zip(chosen.tolist(), lengths, strict=True):
        least = sorted(range(RANGE), key=lambda place: keys[place].item())[:length]
        assert row == sorted(least) + [RANGE] * (8 - length)
    assert choose_positions(keys, RANGE, None).tolist() == list(range(RANGE))


def test_randomised_positions_are_sinusoids_drawn_again_only_in_training():
    encoding = PositionalEncoding(configure(d_model=WIDTH, position="randomised", max_positions=RANGE))
    signals, known = references.timing(RANGE, WIDTH), set()
    torch.manual_seed(0)
    for _ in range(300):
        x, signal = encoding.train()(torch.zeros(2, 3, WIDTH, dtype=torch.float64))
        places = torch.cdist(signal, signals).argmin(1)
        torch.testing.assert_close(x, signals[places].expand(2, -1, -1))
        assert places[0] < places[1] < places[2]
        known.add(tuple(places.tolist()))
    assert len(known) > 250
    middle = sum(places[1] for places in known) / len(known)
    assert middle == pytest.approx((RANGE - 1) / 2, abs=1.5)
    trained = [encoding.eval()(torch.zeros(1, 3, WIDTH))[1] for _ in range(2)]
    assert trained[0].equal(trained[1])


def test_positions_of_a_trained_model_are_spread_over_the_range():
    encoding = PositionalEncoding(configure(d_model=8, position="randomised", max_positions=2048)).eval()
    _, signal = encoding(torch.zeros(1, 500, 8, dtype=torch.float64))
    places = torch.cdist(signal, references.timing(2048, 8)).argmin(1)
    counts = torch.histc(places.double(), bins=8, min=0, max=2048)
    assert counts.min() > 40  # of 62.5 each
    assert len(set(places.diff().tolist())) > 10  # gaps that look random


def test_randomised_positions_hide_the_future_and_padding():
    model = made("randomised", causal=True)
    inputs, changed = tokens(10), tokens(10)
    changed[:, 6:] = (changed[:, 6:] + 1) % 9
    torch.testing.assert_close(model(changed)[:, :6], model(inputs)[:, :6], rtol=1e-12, atol=1e-12)
    padded = model(inputs, torch.tensor([10, 4]))
    torch.testing.assert_close(padded[0], model(inputs[:1])[0], rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(padded[1, :4], model(inputs[1:, :4])[0], rtol=1e-10, atol=1e-10)


def test_a_stream_continues_learned_positions_and_rejects_randomised_ones(golden):
    model, inputs, state, outputs = (
        made("learned", "conv(k=3) >> ff(5)", causal=True),
        tokens(11),
        StreamState(),
        [],
    )
    for piece in inputs.split([4, 1, 6], 1):
        output, state = model.forward_stream(piece, state)
        outputs.append(output)
    torch.testing.assert_close(torch.cat(outputs, 1), model(inputs), rtol=1e-10, atol=1e-10)
    with golden.raises(BuildError):
        model(tokens(31))
    with golden.raises(BuildError):
        made("randomised", "conv(k=3)", causal=True).forward_stream(inputs, StreamState())
    with golden.raises(BuildError):
        made("randomised", "seq2seq(lstm, lstm)")
