"""The linear recurrences once more: one position after the other, one head after the other."""

import torch

from activemem.blocks.testing.references import register_reference


def silu(x):
    return x / (1 + torch.exp(-x))


GATES = {"silu": silu, "sigmoid": lambda x: 1 / (1 + torch.exp(-x))}


def mapped(block, x):
    """Queries, keys and values of each position, (length, 3, heads, head_width)."""
    rows = x @ block.qkv.weight.T
    if block.short_conv is not None:
        weight, seen = block.short_conv.weight, rows
        rows = torch.stack(
            [
                silu(sum(weight[-1 - back] * seen[t - back] for back in range(len(weight)) if t - back >= 0))
                for t in range(len(x))
            ]
        )
    return rows.view(len(x), 3, block.heads, -1)


def merged(block, y, x, head_norm, output_gate):
    """What comes of what heads give, y (length, heads, head_width)."""
    if head_norm == "rms":
        y = y / torch.sqrt((y * y).mean(-1, keepdim=True) + 1e-5) * block.norm.weight
    y = y.flatten(1)
    if output_gate != "none":
        y = y * GATES[output_gate](x @ block.gate.weight.T)
    return y @ block.output.weight.T


def by_heads(block, x, one_head, head_norm, output_gate):
    """`one_head(head, q, k, v)` gives (length, head_width) of (length, head_width) each."""
    qkv = mapped(block, x)
    heads = [one_head(h, *qkv[:, :, h].unbind(1)) for h in range(block.heads)]
    return merged(block, torch.stack(heads, 1), x, head_norm, output_gate)


@register_reference("linear_attn")
def linear_attn(block, x, *, feature, head_norm, output_gate, **_):
    def phi(x):
        return torch.where(x > 0, x + 1, torch.exp(x)) if feature == "elu" else torch.relu(x)

    def one_head(_head, q, k, v):
        state, norm, outputs = torch.zeros(k.shape[1], v.shape[1], dtype=x.dtype), torch.zeros_like(k[0]), []
        for row_q, row_k, row_v in zip(phi(q), phi(k), v, strict=True):
            state = state + torch.outer(row_k, row_v)
            norm = norm + row_k
            outputs.append(row_q @ state / (row_q @ norm + 1e-6))
        return torch.stack(outputs)

    return by_heads(block, x, one_head, head_norm, output_gate)
