"""The block holds to activemem's own suite, and computes what its equation says."""

import math

import pytest
import torch

import activemem
from activemem.blocks.testing.conformance import CHECKS
from activemem.blocks.testing.fixtures import WIDTH, make_block, random_sequences
from activemem.grammar.nodes import BlockNode

torch.set_num_threads(1)  # the checks are many and small


@pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])
@pytest.mark.parametrize("check", CHECKS)
def test_the_block_holds_to_every_check(check, causal):
    check("fading_memory(half_life=3)", causal=causal)


@pytest.mark.parametrize("causal", [False, True], ids=["both", "causal"])
def test_the_block_computes_its_equation(causal):
    block, x = make_block(BlockNode("fading_memory"), causal=causal), random_sequences(1, 7)
    means = torch.empty(7, WIDTH, dtype=x.dtype)
    with torch.no_grad():
        block.log_rate.uniform_(-3.0, 0.0)
        for channel, log_rate in enumerate(block.log_rate.tolist()):
            fading = math.exp(-math.exp(log_rate))
            for t in range(7):
                seen = range(t + 1) if causal else range(7)
                weights = {s: (1 - fading) * fading ** abs(t - s) for s in seen}
                means[t, channel] = sum(weight * x[0, s, channel] for s, weight in weights.items())
        torch.testing.assert_close(block(x)[0], means @ block.output.weight.T)


def test_the_block_stands_in_expressions():
    fading_memory = activemem.block("fading_memory")
    recipe = 2 * (fading_memory(half_life=4) + activemem.sa >> activemem.ff(8))
    assert recipe == activemem.parse("2 * (fading_memory(half_life=4) + sa >> ff(8))")
    assert repr(activemem.build(recipe, d_model=8, vocab=5)) == recipe.text
