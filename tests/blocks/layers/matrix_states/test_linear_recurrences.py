"""Linear recurrences: variants pass the suite, and chunked equals stepwise computation."""

import pytest
import torch
from torch.testing import assert_close

from activemem.blocks.layers.matrix_states import run_in_chunks, sum_with_shared_keys
from activemem.blocks.testing import (
    STEP_CHECKS,
    conformance,
    make_generator,
    outputs_and_gradients_equal_the_reference,
)

SMALL = "heads=2, head_width=9"
VARIANTS = [
    f"linear_attn({SMALL}, feature=relu, head_norm=rms, output_gate=silu)",
    "linear_attn(heads=1, head_width=3, short_conv=4, qk_norm=l2, output_gate=sigmoid)",
    "retention(heads=2, head_width=4, head_norm=none)",
    f"retention({SMALL}, rotate=false, qk_norm=l2)",
    "gla(heads=2, head_width=4, qk_norm=l2)",
    "delta(heads=2, head_width=4, gate=true, negative=true, output_gate=silu)",
    "delta(heads=2, head_width=4, negative=true, short_conv=3)",
    "mamba3(heads=2, head_width=3, state=6, rotation=all, short_conv=2, qk_norm=none)",
    "mamba3(heads=2, head_width=3, state=5, rotation=none, head_norm=rms, output_gate=none)",
    "ssd(heads=3, head_width=4, state=5, qk_norm=l2, head_norm=none, output_gate=none)",
]
SIMPLER = {VARIANTS[1], VARIANTS[3], VARIANTS[6], VARIANTS[8]}
"""Variants whose parameter values also occur in other variants, so that they are tested less often."""

CHECKS = (
    conformance.padding_changes_nothing,
    conformance.flops_are_counted,
    conformance.training_memory_is_stated,
    conformance.weights_can_be_stacked,
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


@pytest.mark.parametrize("decays", ["none", "gentle", "steep"])
def test_chunks_give_the_recurrence_from_any_state_and_with_any_decay(decays):
    generator = make_generator(0)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    for length in (1, 33, 129):
        q, k, v = draw(2, length, 3, 4), draw(2, length, 3, 4), draw(2, length, 3, 5)
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


def draw_shared(length):
    """Return queries, keys, values, steps, a skip and a state, for two sequences and three heads."""
    generator = make_generator(1)
    shapes = ((2, length, 4), (2, length, 4), (2, length, 3, 5), (2, length, 3), (1, 1, 3), (2, 3, 4, 5))
    return [torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_() for shape in shapes]


def sum_one_by_one(q, k, v, steps, skip, state, *, log_decay):
    outputs = []
    for t in range(q.shape[1]):
        written = k[:, t, None, :, None] * (v * steps.unsqueeze(-1))[:, t, :, None, :]
        state = state * log_decay[:, t].exp()[..., None, None] + written
        outputs.append((q[:, t, None, None] @ state).squeeze(2) + skip[0, 0, :, None] * v[:, t])
    return torch.stack(outputs, 1), state


@pytest.mark.parametrize("steep", [0.1, 50.0])
@pytest.mark.parametrize("length", [1, 33, 70])
def test_heads_that_share_keys_have_the_gradients_of_the_recurrence_by_outputs_and_state(length, steep):
    q, k, v, steps, skip, state = given = draw_shared(length)
    log_decay = (-steps.detach().exp() * steep).requires_grad_()
    rest = {"steps": steps, "log_decay": log_decay, "skip": skip, "state": state}
    found = sum_with_shared_keys(q, k, v, **rest)
    expected = sum_one_by_one(*given, log_decay=log_decay)
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, rtol=1e-11, atol=1e-11)
    for which in ((0,), (1,), (0, 1)):
        gradients = [
            torch.autograd.grad(
                sum(pair[each].sin().sum() for each in which),
                (k, v, steps, state, log_decay),
                retain_graph=True,
            )
            for pair in (found, expected)
        ]
        for one, other in zip(*gradients, strict=True):
            assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_the_gradient_of_heads_that_share_keys_has_one_in_its_turn():
    q, k, v, steps, skip, state = draw_shared(35)

    def read(q, k, v, steps, decay, skip, state):
        rest = {"steps": steps, "log_decay": -decay.exp(), "skip": skip, "state": state}
        return sum_with_shared_keys(q, k, v, **rest)

    given = (q, k, v, steps, steps.detach().clone().requires_grad_(), skip, state)
    assert torch.autograd.gradcheck(read, given, fast_mode=True)
    assert torch.autograd.gradgradcheck(read, given, fast_mode=True)
