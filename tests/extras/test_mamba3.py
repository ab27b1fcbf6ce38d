"""The block `mamba3` passes the conformance suite, which compares it with its equation as plain loops."""

import math

import pytest
import torch

from activemem import load_plugin
from activemem.blocks.testing.conformance import CHECKS
from activemem.blocks.testing.references import register_reference

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def plugin():
    load_plugin("mamba3")


def rms(row):
    return row / torch.sqrt((row * row).mean() + 1e-5)


def rotated(x, angles):
    """Rotate each pair of neighbouring channels by its angle, as a complex number."""
    turned = torch.view_as_complex(x.view(-1, 2)) * torch.exp(1j * angles)
    return torch.view_as_real(turned).flatten()


@register_reference("mamba3")
def mamba3(block, x, *, heads, head_width, state, rotation, **_):
    q, k, v = (x @ block.qkv.weight.T).split([state, state, heads * head_width], 1)
    pairs = {"half": state // 4, "all": state // 2, "none": 0}[rotation]
    maps = (x @ block.gates.weight.T).split([heads, heads, heads, pairs], 1)
    steps = torch.log(1 + torch.exp(maps[0] + block.step_offset))
    rates = torch.log(1 + torch.exp(maps[1])).clamp(min=1e-4)
    shares, turns = torch.sigmoid(maps[2]), math.pi * torch.tanh(maps[3])
    outputs = torch.zeros(len(x), heads, head_width, dtype=x.dtype)
    for h in range(heads):
        held = written = torch.zeros(state, head_width, dtype=x.dtype)
        angles = torch.zeros(pairs, dtype=x.dtype)
        for t in range(len(x)):
            angles = angles + steps[t, h] * turns[t]
            query, key = (
                rms(row[t]) * block.gains[part, 0] + block.offsets[part, h] for part, row in enumerate((q, k))
            )
            query, key = (
                torch.cat([rotated(row[: 2 * pairs], angles), row[2 * pairs :]]) for row in (query, key)
            )
            value = v[t].view(heads, head_width)[h]
            step, share, decay = steps[t, h], shares[t, h], torch.exp(-steps[t, h] * rates[t, h])
            held = decay * (held + (1 - share) * step * written)
            written = torch.outer(key, value)
            held = held + share * step * written
            outputs[t, h] = query @ held + block.skip[h] * value
    gate = x @ block.gate.weight.T
    return outputs.flatten(1) * gate * torch.sigmoid(gate) @ block.output.weight.T


@pytest.mark.parametrize("rotation", ["half", "all", "none"])
@pytest.mark.parametrize("check", CHECKS)
def test_the_block_passes_every_check(check, rotation):
    check(f"mamba3(heads=2, head_width=3, state=6, rotation={rotation})", causal=True)
