"""The recurrences of channels once more: one position after the other."""

import torch

from activemem.blocks.testing.references import register_reference

from ..matrix_states.linear_recurrence_references import GATES as OTHER_GATES
from ..matrix_states.linear_recurrence_references import silu

GATES = OTHER_GATES | {"gelu": lambda x: x * (1 + torch.erf(x / 2**0.5)) / 2}


def sigmoid(x):
    return 1 / (1 + torch.exp(-x))


def mapped(block, x, *, active):
    """What the recurrence reads at each position, (length, maps * channels)."""
    rows = x @ block.input.weight.T
    rows = rows if block.input.bias is None else rows + block.input.bias
    if block.short_conv is None:
        return rows
    weight, outputs = block.short_conv.weight, []
    for t in range(len(rows)):
        y = sum(weight[-1 - back] * rows[t - back] for back in range(len(weight)) if t - back >= 0)
        outputs.append(silu(y) if active else y)
    return torch.stack(outputs)


def merged(block, h, x, output_gate):
    h = torch.stack(h)
    if output_gate != "none":
        h = h * GATES[output_gate](x @ block.gate.weight.T)
    return h @ block.output.weight.T


@register_reference("min_gru")
def min_gru(block, x, *, channels, candidate, output_gate, **_):
    h, states = x.new_zeros(channels), []
    for row in mapped(block, x, active=False):
        z, new = sigmoid(row[:channels]), row[channels:]
        if candidate == "positive":
            new = torch.where(new >= 0, new + 0.5, sigmoid(new))
        h = (1 - z) * h + z * new
        states.append(h)
    return merged(block, states, x, output_gate)


@register_reference("rg_lru")
def rg_lru(block, x, *, heads, output_gate, **_):
    h, states = x.new_zeros(block.channels), []
    for u in mapped(block, x, active=False):
        parts = zip(u.chunk(heads), block.gates.weight, strict=True)
        both = torch.stack([(part @ weight).view(2, -1) for part, weight in parts], 1).flatten(1)
        r, i = sigmoid(both + block.gates.bias)
        a = sigmoid(block.rates.weight) ** (8 * r)
        h = a * h + torch.sqrt(1 - a**2) * i * u
        states.append(h)
    return merged(block, states, x, output_gate)
