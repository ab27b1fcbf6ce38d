"""The block `gdn2` passes the conformance suite, which compares it with its equation as plain loops."""

import pytest
import torch

from activemem import load_plugin
from activemem.blocks.testing.conformance import CHECKS
from activemem.blocks.testing.references import register_reference

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def plugin():
    load_plugin("gdn2")


def unit(row):
    return row / torch.sqrt((row * row).sum() + 1e-6)


@register_reference("gdn2")
def gdn2(block, x, *, heads, head_width, negative, **_):
    rows, taps = x @ block.qkv.weight.T, block.taps
    mapped = torch.zeros_like(rows)
    for t in range(len(x)):
        for lag in range(min(4, t + 1)):
            mapped[t] += rows[t - lag] * taps[3 - lag]
    q, k, v = (mapped * torch.sigmoid(mapped)).view(len(x), 3, heads, head_width).unbind(1)
    erased, written = (
        torch.sigmoid(x @ gate.weight.T).view(len(x), heads, -1) for gate in (block.erase, block.write)
    )
    slow = (x @ block.decay_in.weight.T @ block.decay_out.weight.T).view(len(x), heads, -1) + block.offset
    decays = torch.exp(-(torch.log(1 + torch.exp(slow)) * torch.exp(block.log_rate)).clamp(max=5))
    outputs = torch.zeros(len(x), heads, head_width, dtype=x.dtype)
    for h in range(heads):
        state = torch.zeros(head_width, head_width, dtype=x.dtype)
        for t in range(len(x)):
            key, erase = unit(k[t, h]), (2 if negative else 1) * erased[t, h]
            state = torch.diag(decays[t, h]) @ state
            state = (
                state - torch.outer(key, (erase * key) @ state) + torch.outer(key, written[t, h] * v[t, h])
            )
            y = unit(q[t, h]) @ state / head_width**0.5
            outputs[t, h] = y / torch.sqrt((y * y).mean() + 1e-5) * block.gains
    return outputs.flatten(1) * torch.sigmoid(x @ block.gate.weight.T) @ block.output.weight.T


@pytest.mark.parametrize(
    "recipe", ["gdn2(heads=2, head_width=3)", "gdn2(heads=1, head_width=4, negative=true)"]
)
@pytest.mark.parametrize("check", CHECKS)
def test_the_block_passes_every_check(check, recipe):
    check(recipe, causal=True)
