"""Blocks and transducers whose weights have 16 bits, as after `.bfloat16()` or `.half()`."""

import pytest
import torch

from activemem.blocks import BuildError, build
from activemem.blocks.testing.fixtures import (
    example_block,
    is_pool,
    make_block,
    make_transducer,
    parse_block,
    prefix_mask,
    random_sequences,
    valid_outputs,
)
from activemem.grammar import Role, lookup, render
from activemem.grammar.vocabulary.spec import builtin_names

from .example_blocks import BLOCKS

HALF_TYPES = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bfloat16", "float16"])
STEEP = ("kda",)
"""Blocks whose decays do not fit in a float16."""


def with_gradients(block, x, mask):
    """Return the valid outputs, and the gradients of the input and of all weights."""
    x = x.clone().requires_grad_()
    y = valid_outputs(block(x, mask), mask)
    y.float().square().mean().backward()
    return y.detach(), x.grad, *(each.grad for each in block.parameters() if each.grad is not None)


def off(found, expected):
    return float((found.detach().float() - expected.detach()).norm() / expected.detach().norm())


@pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])
@pytest.mark.parametrize("name", BLOCKS)
@HALF_TYPES
def test_weights_of_16_bits_give_nearly_the_same_outputs(name, causal, dtype):
    half = make_block(example_block(name), causal=causal, width=16, dtype=dtype)
    exact = make_block(example_block(name), causal=causal, width=16, dtype=torch.float32)
    exact.load_state_dict(half.state_dict())
    x, mask = random_sequences(3, 70, width=16).to(dtype), prefix_mask([70, 17, 5], 70)
    if dtype == torch.float16 and name in STEEP:
        with pytest.raises(BuildError, match="for decays, got float16: use bfloat16"):
            half(x, mask)
        return
    y, *gradients = with_gradients(half, x, mask)
    assert y.dtype == dtype
    assert off(y, valid_outputs(exact(x.float(), mask), mask)) < 0.07
    assert all(each.isfinite().all() for each in gradients)
    if causal and not is_pool(render(example_block(name))):
        first, state = half.step_with_grad(x[:, :33], None)
        second, _ = half.step_with_grad(x[:, 33:], state)
        assert first.dtype == second.dtype == dtype
        assert off(torch.cat([first, second], 1), exact(x.float())) < 0.07


@pytest.mark.parametrize("text", ["delta", "diff_attn", "retention", "ttt"])
def test_autocast_to_float16_gives_finite_gradients_at_short_vectors(text):
    block = make_block(parse_block(text), causal=True, width=16, dtype=torch.float32)
    x, mask = 1e-3 * random_sequences(3, 40, width=16, dtype=torch.float32), prefix_mask([40, 17, 5], 40)
    with torch.autocast("cpu", dtype=torch.float16):
        found = with_gradients(block, x, mask)
    assert all(each.isfinite().all() for each in found)


@pytest.mark.parametrize(
    "text", ["base_conv(k=1000, filter=implicit)", "hyena(channels=16, order=2, k=1000)"]
)
def test_a_long_filter_of_bfloat16_weights_counts_its_lags_exactly(text):
    half = make_block(parse_block(text), causal=True, width=16, dtype=torch.bfloat16)
    exact = make_block(parse_block(text), causal=True, width=16, dtype=torch.float32)
    exact.load_state_dict(half.state_dict())
    x = random_sequences(1, 1000, width=16).bfloat16()
    assert off(half(x), exact(x.float())) < 0.02


TRANSDUCERS = [name for name in builtin_names() if lookup(name).role is Role.TRANSDUCER]


@pytest.mark.parametrize(
    "text",
    [*(render(example_block(name)) for name in TRANSDUCERS), "seq2seq(lstm, lstm)", "seq2seq(gru, gru)"],
)
@HALF_TYPES
def test_a_transducer_of_16_bits_gives_nearly_the_same_outputs(text, dtype):
    half, exact = make_transducer(text, dtype=dtype), make_transducer(text, dtype=torch.float32)
    exact.load_state_dict(half.state_dict())
    source, target = (random_sequences(3, 6, seed=seed).to(dtype) for seed in (1, 2))
    mask = prefix_mask([6, 4, 1], 6)
    y = half(source, target, mask, mask)
    assert y.dtype == dtype
    assert off(y[mask], exact(source.float(), target.float(), mask, mask)[mask]) < 0.05
    y[mask].float().square().mean().backward()
    assert all(each.grad is None or each.grad.isfinite().all() for each in half.parameters())


@HALF_TYPES
def test_a_model_of_16_bits_trains(dtype):
    model = build("2 * (sa + gru >> delta >> ff(8))", causal=True, d_model=16, vocab=5).to(dtype)
    tokens = torch.randint(5, (3, 9), generator=torch.Generator().manual_seed(0))
    losses = model.nll(tokens, tokens.roll(1, 1), torch.tensor([9, 4, 1]))
    losses.mean().backward()
    assert losses.dtype == dtype
    assert all(each.grad is not None and each.grad.isfinite().all() for each in model.parameters())
