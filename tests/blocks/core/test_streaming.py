"""Streaming: pieces of a text give the outputs of the whole text, with a state of the smallest size."""

import pytest
import torch

from activemem.blocks import BuildError, build
from activemem.blocks.core.block import StreamState
from activemem.blocks.testing.fixtures import make_generator

HEADS = "heads=2, head_width=3"
STACKS = [
    f"2 * (all_attn(N=3, span=5, {HEADS}, adaptive=true, ramp=2) >> ff(5))",
    f"2 * (lstm(layers=2) + conv(k=4) >> persistent_conv(k=3)) >> sa({HEADS}, span=4)",
    f"2 * (all_attn(N=4, span=3, {HEADS}) + conv(k=4) >> ff_attn(N=6)) >> tied(2 * cgru(k=3))",
    f"3 * all_attn(N=2, span=3, {HEADS}) >> tied(2 * (sa({HEADS}, span=2) + (cgru(k=3) >> ff(4))))",
]
LENGTH = 29
CUTS = {"ones": [1] * 29, "even": [7, 7, 7, 7, 1], "growing": [1, 2, 5, 21], "shrinking": [20, 6, 2, 1]}


def model(text, **given):
    """Return a causal model in double precision; adaptive spans differ between heads."""
    settings = {
        "d_model": 8,
        "vocab": 7,
        "causal": True,
        "dropout": 0.0,
        "generator": make_generator(1),
    } | given
    built = build(text, **settings).double().eval()
    with torch.no_grad():
        for name, parameter in built.named_parameters():
            if name.endswith("spans.z"):
                parameter.copy_(torch.linspace(0.1, 0.6, len(parameter)))
    built.after_optimiser_step()
    return built


def tokens(seed=2):
    return torch.randint(7, (2, LENGTH), generator=make_generator(seed))


def streamed(built, inputs, cuts):
    """Return the outputs of a stream with these cuts."""
    stream, found = StreamState(), []
    for piece in inputs.split(cuts, 1):
        outputs, stream = built.forward_stream(piece, stream)
        found.append(outputs)
    assert stream.past_length == inputs.shape[1]
    return torch.cat(found, 1)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("text", STACKS)
def test_a_stream_in_pieces_gives_the_results_of_one_pass(text, cuts, norm):
    built = model(text, norm=norm, position="none" if norm == "post" else "timing")
    with torch.no_grad():
        torch.testing.assert_close(streamed(built, tokens(), cuts), built(tokens()), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("text", STACKS)
def test_no_position_of_a_stream_sees_a_later_one(text):
    built, cuts = model(text), [9, 4, 16]
    with torch.no_grad():
        before = streamed(built, tokens(), cuts)
        for place in range(LENGTH):
            other = tokens()
            other[:, place] = (other[:, place] + 1) % 7
            moved = (streamed(built, other, cuts) != before).any(-1).any(0)
            assert not moved[:place].any()
            assert moved[place]


def test_a_block_that_keeps_inputs_keeps_no_more_than_it_reaches():
    built = model(f"all_attn(N=3, span=5, {HEADS}) >> ff(4) >> cgru(k=3) >> conv(k=90)")
    _, stream = built.forward_stream(tokens(), StreamState())
    assert [None if kept is None else kept.shape[1] for kept in stream.block_states] == [5, None, 4, LENGTH]


def test_gradients_end_where_a_piece_begins():
    built = model(f"all_attn(N=2, span=4, {HEADS})", embedding="unit")
    _, stream = built.forward_stream(tokens(), StreamState())
    outputs, _ = built.forward_stream(torch.zeros(2, 3, dtype=torch.int64), stream)
    outputs.sum().backward()
    met = built.embedding.weight.grad.abs().sum(-1) > 0
    assert met.tolist() == [True, *[False] * 6]


@pytest.mark.parametrize("text", ["lstm(layers=2)", "delta(heads=2, head_width=3)", "conv(k=4)"])
def test_a_state_of_another_batch_size_is_refused(text):
    built = model(text)
    _, stream = built.forward_stream(tokens(), StreamState())
    for batch in (1, 5):
        with pytest.raises(
            BuildError, match=f"expected a state of batch size {batch}, as of the input, got 2"
        ):
            built.forward_stream(torch.zeros(batch, 3, dtype=torch.int64), stream)


def test_attention_to_everything_has_no_stream(golden):
    with golden.raises(BuildError):
        model(f"sa({HEADS})").forward_stream(tokens(), StreamState())


@pytest.mark.parametrize("text", STACKS)
def test_a_stream_after_zeros_is_the_same_in_any_pieces(text):
    built = model(text, norm="post", position="none", zero_past=True)
    with torch.no_grad():
        whole, *others = (streamed(built, tokens(), cuts) for cuts in CUTS.values())
        for other in others:
            torch.testing.assert_close(other, whole, rtol=1e-9, atol=1e-9)
        assert not torch.allclose(whole[:, 0], built(tokens())[:, 0])


def test_a_block_has_as_many_zeros_before_it_as_it_sees_in_its_past():
    built = model(
        f"sa({HEADS}, pos=relative, span=5)", norm="none", residual=False, position="none", zero_past=True
    )
    block = built.body.layers[0].part
    with torch.no_grad():
        x = built.embedding(tokens()) * built.scale
        expected = built.output(block.forward_with_past(x, x.new_zeros(2, 5, 8)))
        torch.testing.assert_close(streamed(built, tokens(), [10, 19]), expected, rtol=1e-9, atol=1e-9)
