"""Channel recurrences: the scan equals stepwise computation, with gradients."""

import pytest
import torch
from torch.testing import assert_close

from activemem.blocks.layers.vector_states.scans import scan
from activemem.blocks.testing.conformance import steps_with_gradients_are_right, training_memory_is_stated
from activemem.blocks.testing.fixtures import make_generator
from activemem.blocks.testing.references import outputs_and_gradients_equal_the_reference

from ....quick_cases import one_in

VARIANTS = [
    "min_gru(channels=5)",
    "min_gru(channels=5, candidate=linear, short_conv=3, output_gate=sigmoid)",
    "mamba(channels=4, state=3, short_conv=0, output_gate=none)",
    "mamba(channels=4, state=3, negative=true)",
    "slstm(heads=2, head_width=3, forget=exp, head_norm=none)",
    "rg_lru(heads=2, head_width=3, short_conv=0, output_gate=silu)",
]


@pytest.mark.parametrize("text", one_in(2, VARIANTS))
def test_a_scan_gives_the_outputs_and_gradients_of_the_reference(text):
    outputs_and_gradients_equal_the_reference(text, 37)
    training_memory_is_stated(text, causal=True)
    steps_with_gradients_are_right(text, causal=True)


@pytest.mark.parametrize("length", [1, 2, 16, 19])
def test_a_scan_resumes_from_a_state_and_forgets_at_once(length):
    generator = make_generator(length)
    decay, added = torch.rand(2, 2, length, 3, generator=generator, dtype=torch.float64)
    decay[:, ::3] = 0.0
    state = torch.randn(2, 3, generator=generator, dtype=torch.float64)
    inputs = [each.requires_grad_() for each in (decay, added, state)]
    expected, h = [], state
    for t in range(length):
        h = decay[:, t] * h + added[:, t]
        expected.append(h)
    found, expected = scan(decay, added, state), torch.stack(expected, 1)
    assert_close(found, expected, rtol=1e-13, atol=1e-13)
    weights = torch.randn(found.shape, generator=generator, dtype=torch.float64)
    gradients = [torch.autograd.grad((each * weights).sum(), inputs) for each in (found, expected)]
    for one, other in zip(*gradients, strict=True):
        assert_close(one, other, rtol=1e-12, atol=1e-12)
    assert torch.autograd.gradgradcheck(scan, inputs, fast_mode=True)
