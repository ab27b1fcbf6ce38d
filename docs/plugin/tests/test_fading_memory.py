"""The block passes activemem's conformance suite, which compares it with its equation."""

import math

import pytest
import torch

import activemem
from activemem.blocks.testing.conformance import CHECKS
from activemem.blocks.testing.references import register_reference

torch.set_num_threads(1)  # the checks are many and small


@register_reference("fading_memory")
def fading_memory(block, x, *, causal, **_settings):
    """The outputs (length, width) of one sequence, as plain loops."""
    means = torch.zeros_like(x)
    for channel, log_rate in enumerate(block.log_rate.tolist()):
        fading = math.exp(-math.exp(log_rate))
        for t in range(len(x)):
            for s in range(t + 1) if causal else range(len(x)):
                means[t, channel] += (1 - fading) * fading ** abs(t - s) * x[s, channel]
    return means @ block.output.weight.T


@pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])
@pytest.mark.parametrize("check", CHECKS)
def test_the_block_passes_every_check(check, causal):
    check("fading_memory(half_life=3)", causal=causal)


def test_the_block_can_be_used_in_expressions():
    fading_memory = activemem.block("fading_memory")
    recipe = 2 * (fading_memory(half_life=4) + activemem.sa >> activemem.ff(8))
    assert recipe == activemem.parse("2 * (fading_memory(half_life=4) + sa >> ff(8))")
    assert repr(activemem.build(recipe, d_model=8, vocab=5)) == recipe.text
