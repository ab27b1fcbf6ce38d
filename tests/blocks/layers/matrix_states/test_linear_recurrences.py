"""Linear recurrences: variants pass the suite, and chunked equals stepwise computation."""

import pytest
import torch
from torch.testing import assert_close

from activemem.blocks.layers.matrix_states.chunked_recurrence import run_in_chunks
from activemem.blocks.testing import conformance
from activemem.blocks.testing.conformance import STEP_CHECKS
from activemem.blocks.testing.fixtures import make_block, make_generator, parse_block, random_sequences
from activemem.blocks.testing.references import outputs_and_gradients_equal_the_reference

SMALL = "heads=2, head_width=9"
VARIANTS = [
    f"linear_attn({SMALL}, feature=relu, head_norm=rms, output_gate=silu)",
    "linear_attn(heads=1, head_width=3, short_conv=4, qk_norm=l2, output_gate=sigmoid)",
    "retention(heads=2, head_width=4, head_norm=none)",
    f"retention({SMALL}, rotate=false, qk_norm=l2)",
    "gla(heads=2, head_width=4, qk_norm=l2)",
    "delta(heads=2, head_width=4, gate=true, negative=true, output_gate=silu)",
    "delta(heads=2, head_width=4, negative=true, short_conv=3)",
    "ssd(heads=3, head_width=4, state=5, qk_norm=l2, head_norm=none, output_gate=none)",
]
SIMPLER = {VARIANTS[1], VARIANTS[3], VARIANTS[6]}
"""Variants whose parameter values also occur in other variants, so that they are tested less often."""

CHECKS = (
    conformance.padding_changes_nothing,
    conformance.flops_are_counted,
    conformance.training_memory_is_stated,
    conformance.half_precision_is_near,
    *STEP_CHECKS,
)
"""Checks that depend on a block's parameters; other checks run once per block."""


@pytest.mark.parametrize(
    "text", [pytest.param(text, marks=[pytest.mark.heavy] * (text in SIMPLER)) for text in VARIANTS]
)
@pytest.mark.parametrize("check", CHECKS)
def test_every_variant_passes_every_check(check, text):
    check(text, causal=True)


@pytest.mark.parametrize("text", VARIANTS)
@pytest.mark.parametrize("length", [7, 130])
def test_chunks_give_the_outputs_and_gradients_of_the_reference(text, length):
    outputs_and_gradients_equal_the_reference(text, length)


@pytest.mark.parametrize("length, size", [(500, 1), (16_000, 16_000)], ids=["stepwise", "whole"])
@pytest.mark.parametrize(
    "text",
    [
        "linear_attn(heads=2, head_width=8)",
        "retention(heads=8, head_width=4)",
    ],
)
def test_half_precision_does_not_round_away_what_is_added_to_a_large_sum(text, length, size):
    block = make_block(parse_block(text), causal=True, width=16)
    x = random_sequences(1, length, width=16) + 0.5
    with torch.no_grad():
        y, last = block(x), block.step_with_grad(x, None)[1]
        state, outputs = None, []
        for piece in x.float().split(size, 1):
            with torch.autocast("cpu", torch.bfloat16):
                near, state = block.float().step_with_grad(piece, state)
            outputs.append(near)
    for found, expected in ((torch.cat(outputs, 1), y), (state, last)):
        assert (found - expected).norm() < 0.015 * expected.norm()


@pytest.mark.parametrize("heads_of_keys", [3, 1])
@pytest.mark.parametrize("decays", ["none", "gentle", "steep"])
def test_chunks_give_the_recurrence_from_any_state_and_with_any_decay(decays, heads_of_keys):
    generator = make_generator(0)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    for length in (1, 33, 129):
        q, k = draw(2, length, heads_of_keys, 4), draw(2, length, heads_of_keys, 4)
        v = draw(2, length, 3, 5)
        state, log_decay = draw(2, 3, 4, 5), None
        if decays != "none":
            log_decay = -draw(2, length, 3).exp() * {"gentle": 0.1, "steep": 50.0}[decays]
        y, last = run_in_chunks(q, k, v, log_decay, state)
        outputs = []
        for t in range(length):
            kept = state if log_decay is None else state * log_decay[:, t].exp()[..., None, None]
            state = kept + k[:, t, :, :, None] * v[:, t, :, None, :]
            outputs.append((q[:, t, :, None] @ state).squeeze(2))
        assert_close(y, torch.stack(outputs, 1), rtol=1e-11, atol=1e-11)
        assert_close(last, state, rtol=1e-11, atol=1e-11)
