"""Reference implementations of channel recurrences: one position at a time."""

import torch

from activemem.blocks.testing.references import register_reference

from .common import GATES, channel_convolution, sigmoid


def mapped(block, x, *, active):
    """Return the inputs of the recurrence at each position, (length, maps * channels)."""
    rows = x @ block.input.weight.T
    rows = rows if block.input.bias is None else rows + block.input.bias
    if block.short_conv is None:
        return rows
    y = channel_convolution(block.short_conv.weight.flip(0).T, rows)
    return GATES["silu"](y) if active else y


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


@register_reference("mamba")
def mamba(block, x, *, channels, state, negative, output_gate, **_):
    h, outputs = x.new_zeros(channels, state), []
    rank = block.rank
    for u in mapped(block, x, active=True):
        chosen = block.selection.weight @ u
        keys, queries = chosen[rank : rank + state], chosen[rank + state :]
        steps = torch.log(1 + torch.exp(block.steps.weight @ chosen[:rank] + block.rates.step_offset))
        decay = torch.exp(-torch.exp(block.rates.log_rate) * steps[:, None])
        h = (2 * decay - 1 if negative else decay) * h + torch.outer(steps * u, keys)
        outputs.append(h @ queries + block.rates.skip * u)
    return merged(block, outputs, x, output_gate)


@register_reference("slstm")
def slstm(block, x, *, heads, head_width, forget, head_norm, **_):
    columns = []
    for head in range(heads):
        own = slice(head * head_width, (head + 1) * head_width)
        maps = [weight[own] for weight in block.input.weight.chunk(4)]
        recurrent = block.transitions.weight[head].chunk(4, 1)
        offsets = block.transitions.offset[head].chunk(4)
        h, c, n = (x.new_zeros(head_width) for _ in range(3))
        outputs = []
        for row in x:
            gates = zip(maps, recurrent, offsets, strict=True)
            z, i, f, o = (w @ row + h @ r + b for w, r, b in gates)
            i, f = torch.exp(i), torch.exp(f) if forget == "exp" else sigmoid(f)
            c, n = f * c + i * torch.tanh(z), f * n + i
            h = sigmoid(o) * c / n
            norm = torch.sqrt((h * h).mean() + 1e-5) if head_norm == "rms" else 1
            outputs.append(h / norm * (block.norm.weight if head_norm == "rms" else 1))
        columns.append(torch.stack(outputs))
    return torch.cat(columns, 1) @ block.output.weight.T
