"""A text read in pieces is the text read at once; what is kept is enough, and no more; no future is seen."""

import pytest
import torch

from activemem.blocks import BuildError, build
from activemem.blocks.core.streaming import StreamState
from activemem.blocks.testing.fixtures import make_generator
from activemem.grammar import Role, lookup, render

from ..example_blocks import SEQUENCE_BLOCKS, example_block

HEADS = "heads=2, head_width=3"
SPANS = [
    f"sa({HEADS}, span=3)",
    f"sa({HEADS}, span=5, adaptive=true, ramp=3)",
    f"sa({HEADS}, span=1)",
    f"sa({HEADS}, pos=relative, span=1, self=true)",
    f"sa({HEADS}, pos=relative, span=4, pos_values=true)",
    *(f"{name}(N=0, span=4, {HEADS})" for name in ("all_attn", "attn_split", "head_split", "single_head")),
    f"all_attn(N=3, span=1, {HEADS})",
    f"all_attn(N=3, span=6, {HEADS}, self=true)",
    f"all_attn(N=3, span=90, {HEADS})",
    f"all_attn(N=3, span=5, {HEADS}, adaptive=true, ramp=2)",
    f"head_split(N=3, span=5, {HEADS}, adaptive=true, pos_values=true)",
]
MIXERS = [
    render(example_block(name))
    for name in SEQUENCE_BLOCKS
    if lookup(name).role is Role.MIXER and name != "sa"  # which sees everything unless it has a span
]
STACKS = [
    *(f"2 * ({text} >> ff(5))" for text in [*SPANS, *MIXERS]),
    f"2 * (all_attn(N=4, span=3, {HEADS}) + conv(k=4) >> ff_attn(6)) >> tied(2 * cgru(k=3))",
    f"3 * all_attn(N=2, span=3, {HEADS}) >> tied(2 * (sa({HEADS}, span=2) + (cgru(k=3) >> ff(4))))",
]
LENGTH = 29
CUTS = {"ones": [1] * 29, "even": [7, 7, 7, 7, 1], "growing": [1, 2, 5, 21], "shrinking": [20, 6, 2, 1]}


def model(text, **given):
    """A causal model in double precision, its heads seeing differently far if they learn how far."""
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
    """The outputs of a stream that is cut so."""
    stream, found = StreamState(), []
    for piece in inputs.split(cuts, 1):
        outputs, stream = built.forward_stream(piece, stream)
        found.append(outputs)
    assert stream.past_length == inputs.shape[1]
    return torch.cat(found, 1)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("text", STACKS)
def test_a_stream_in_pieces_gives_what_one_pass_gives(text, cuts, norm):
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


@pytest.mark.parametrize("text", [*SPANS, *MIXERS])
def test_no_more_is_kept_than_a_block_reaches(text):
    built = model(text)
    _, stream = built.forward_stream(tokens(), StreamState())
    for kept, block in zip(stream.block_states, built._blocks(), strict=True):
        if block.context_length == 0:
            assert kept is None
        else:
            assert not kept.requires_grad
            # what keeps a state in place of the past keeps as much of it wherever it stands
            assert block.context_length is None or kept.shape[1] == min(block.context_length, LENGTH)


@pytest.mark.parametrize("text", SPANS)
def test_a_past_that_is_further_than_the_span_moves_nothing(text):
    built = model(text)
    block = built._blocks()[0]
    past, x = (torch.randn(2, 40, 8, generator=make_generator(seed), dtype=torch.float64) for seed in (3, 4))
    kept = past[:, 40 - min(block.context_length, 40) :]
    torch.testing.assert_close(
        block.forward_with_past(x, past), block.forward_with_past(x, kept), rtol=1e-11, atol=1e-11
    )


def test_gradients_end_where_a_piece_begins():
    built = model(f"all_attn(N=2, span=4, {HEADS})", embedding="unit")
    _, stream = built.forward_stream(tokens(), StreamState())
    outputs, _ = built.forward_stream(torch.zeros(2, 3, dtype=torch.int64), stream)
    outputs.sum().backward()
    met = built.embedding.weight.grad.abs().sum(-1) > 0
    assert met.tolist() == [True, *[False] * 6]


def test_attention_to_everything_has_no_stream():
    with pytest.raises(
        BuildError, match=r"^SelfAttention sees all of the past, and a stream has no beginning$"
    ):
        model(f"sa({HEADS})").forward_stream(tokens(), StreamState())
