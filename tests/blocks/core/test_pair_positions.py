"""Random pairwise positions: increasing, and drawn by each sequence's own length."""

from itertools import pairwise

import pytest
import torch
from torch.testing import assert_close

from activemem.blocks import BuildError, build
from activemem.blocks.core.block import StreamState
from activemem.blocks.core.positions import PairPositions
from activemem.blocks.testing.fixtures import make_generator, prefix_mask, random_sequences, saved_bytes
from activemem.grammar import analyse, configure

RANGE, LENGTHS = 30, [10, 4, 1]
MIXERS = [
    *(f"sa(heads=2, head_width=4, pos={pos})" for pos in ("rope", "alibi", "t5")),
    "sa(heads=4, head_width=4, kv_heads=2, qk_norm=rms, pos=rope)",
    "sa(heads=2, head_width=4, span=5, pos=rope)",
    "diff_attn(heads=2, head_width=4, pos=rope)",
    "latent_attn(heads=2, head_width=4, latent=6, rope_width=2)",
]
SIZES = {"d_model": 6, "vocab": 9, "causal": True, "dropout": 0.0}
every_mixer = pytest.mark.parametrize("mixer", MIXERS)


def made(mixer, count=RANGE, position="randomised_pairs", **settings):
    given = SIZES | {"position": position, "max_positions": count} | settings
    return build(f"2 * {mixer} >> ff(5)", **given, generator=make_generator(0)).double().eval()


def tokens(length=10):
    return torch.randint(9, (3, length), generator=make_generator(1))


def drawn(count=RANGE):
    return PairPositions(configure(d_model=6, position="randomised_pairs", max_positions=count))


def test_angles_are_those_of_ordered_positions_and_distances_are_ordered_ones():
    positions, x, mask = drawn().train(), random_sequences(3, 10), prefix_mask(LENGTHS, 10)
    torch.manual_seed(0)
    seen = set()
    for _ in range(10):
        angles = positions.angles(x, 4, mask=mask)
        assert_close(angles[..., 1], angles[..., 0] * 1e4**-0.5)
        for row, length in zip(angles[..., 0].tolist(), LENGTHS, strict=True):
            assert all(one < other for one, other in pairwise(row[:length]))
            assert all(place in range(RANGE) for place in row[:length])
        seen.add(tuple(angles[0, :, 0].tolist()))
        for row, length in zip(positions.distances(10, x, mask).tolist(), LENGTHS, strict=True):
            right, left = row[10 : 10 + length - 1], row[9 - length + 1 : 9][::-1]
            assert row[9] == 0
            assert left == [-each for each in right]
            assert left == sorted(set(left))
            assert all(each in range(1, RANGE) for each in left)
    assert len(seen) == 10


@every_mixer
def test_where_all_positions_are_drawn_they_are_those_in_turn(mixer):
    plain = made(mixer, position="none")
    assert_close(made(mixer, 10)(tokens()), plain(tokens()), rtol=1e-12, atol=1e-12)
    lengths = torch.tensor(LENGTHS)
    found, expected = made(mixer)(tokens(), lengths)[2, :1], plain(tokens(), lengths)[2, :1]
    assert_close(found, expected, rtol=1e-12, atol=1e-12)  # of one token there is one distance alone


@every_mixer
def test_padding_and_what_comes_later_move_nothing(mixer):
    model, lengths, changed = made(mixer), torch.tensor(LENGTHS), tokens()
    padded = model(tokens(), lengths)
    for row, length in enumerate(LENGTHS):
        alone = model(tokens()[row : row + 1, :length])
        assert_close(padded[row, :length], alone[0], rtol=1e-10, atol=1e-10)
    changed[:, 6:] = (changed[:, 6:] + 1) % 9
    assert_close(model(changed)[:, :6], model(tokens())[:, :6], rtol=1e-12, atol=1e-12)
    assert not torch.allclose(model(tokens()), made(mixer, position="none")(tokens()))


@every_mixer
def test_in_training_other_positions_are_drawn_each_time_and_afterwards_the_same(mixer):
    model = made(mixer)
    assert model(tokens()).equal(model(tokens()))
    torch.manual_seed(0)
    assert not torch.allclose(model.train()(tokens()), model(tokens()))


@every_mixer
def test_memory_is_as_stated(mixer):
    text, sizes = f"{mixer} >> ff(5)", SIZES | {"position": "randomised_pairs", "max_positions": 80}
    for length in (9, 70):
        stated = analyse(text, length=length, **sizes).memory(3).activations
        assert saved_bytes(build(text, **sizes), batch=3, length=length) == pytest.approx(stated, rel=0.01)


def test_a_bias_by_buckets_learns_at_the_distances_that_are_drawn():
    model = made("sa(heads=2, head_width=4, pos=t5)").train()
    model(tokens()).square().sum().backward()
    (moved, *_) = (p.grad for name, p in model.named_parameters() if name.endswith("bias.weight"))
    assert moved[:, 10:].any()  # those of distances longer than the sequences


@every_mixer
def test_pieces_and_longer_sequences_are_reported(mixer, golden):
    model = made(mixer)
    with golden.raises(BuildError):
        model(tokens(31))
    with golden.raises(BuildError):
        model.forward_stream(tokens(), StreamState())
    block, x = model.body.layers[0].part, random_sequences(2, 5)
    _, state = block.step_with_grad(x, None)
    with golden.raises(BuildError):
        block.step_with_grad(x, state)


@pytest.mark.parametrize("recipe", ["sa(heads=2)", "retention(heads=2)", "latent_attn(rope_width=0)"])
def test_a_model_in_which_nothing_compares_positions_is_reported(recipe):
    told = r"randomised_pairs needs .* sa\(pos=rope\)"
    with pytest.raises(BuildError, match=told):
        made(recipe)


def test_a_transducer_has_no_pairwise_positions(golden):
    with pytest.raises(BuildError) as caught:
        build("seq2seq(lstm, lstm)", **SIZES, position="randomised_pairs")
    golden(str(caught.value))
    assert "compares" not in str(caught.value)
