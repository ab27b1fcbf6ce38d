"""Reference implementations of linear recurrences: one position and head at a time."""

import math

import torch

from activemem.blocks.testing.references import register_reference

from .common import GATES, channel_convolution, rms, sigmoid


def mapped(block, x):
    """Return queries, keys and values of each position, (length, channels)."""
    rows = x @ block.qkv.weight.T
    if block.short_conv is None:
        return rows
    return GATES["silu"](channel_convolution(block.short_conv.weight.flip(0).T, rows))


def merged(block, y, x, head_norm, output_gate):
    """Return the block's output, given the heads' outputs y (length, heads, head_width)."""
    if head_norm == "rms":
        y = rms(y, block.norm.weight)
    y = y.flatten(1)
    if output_gate != "none":
        y = y * GATES[output_gate](x @ block.gate.weight.T)
    return y @ block.output.weight.T


def unit(rows):
    return rows / torch.sqrt((rows * rows).sum(-1, keepdim=True) + 1e-6)


def by_heads(block, x, one_head, *, qk_norm, head_norm, output_gate, **_):
    """Return the block's output; `one_head(head, q, k, v)` computes one head of it, (length, head_width)."""
    qkv = mapped(block, x).view(len(x), 3, block.heads, -1)
    if qk_norm == "l2":
        qkv = torch.cat([unit(qkv[:, :2]), qkv[:, 2:]], 1)
    heads = [one_head(h, *qkv[:, :, h].unbind(1)) for h in range(block.heads)]
    return merged(block, torch.stack(heads, 1), x, head_norm, output_gate)


def by_states(block, x, next_state, *, head_width, **around):
    """Return the block's output; `next_state(head, t, state, k, v)` is a head's state after position t."""

    def one_head(head, q, k, v):
        state, outputs = torch.zeros(head_width, head_width, dtype=x.dtype), []
        for t in range(len(x)):
            state = next_state(head, t, state, k[t], v[t])
            outputs.append(q[t] @ state / head_width**0.5)
        return torch.stack(outputs)

    return by_heads(block, x, one_head, **around)


@register_reference("linear_attn")
def linear_attn(block, x, *, feature, **around):
    def phi(x):
        return torch.where(x > 0, x + 1, torch.exp(x)) if feature == "elu" else torch.relu(x)

    def one_head(_head, q, k, v):
        state, norm, outputs = torch.zeros(k.shape[1], v.shape[1], dtype=x.dtype), torch.zeros_like(k[0]), []
        for row_q, row_k, row_v in zip(phi(q), phi(k), v, strict=True):
            state = state + torch.outer(row_k, row_v)
            norm = norm + row_k
            outputs.append(row_q @ state / (row_q @ norm + 1e-6))
        return torch.stack(outputs)

    return by_heads(block, x, one_head, **around)


def rotated(x, angles):
    """Rotate each pair of neighbouring channels by its angle, as a complex number."""
    turned = torch.view_as_complex(x.view(-1, 2)) * torch.exp(1j * angles)
    return torch.view_as_real(turned).flatten()


@register_reference("retention")
def retention(block, x, *, rotate, head_width, **around):
    def one_head(head, q, k, v):
        gamma, state, outputs = 1 - 2.0 ** (-5 - head), torch.zeros(head_width, head_width, dtype=x.dtype), []
        for t in range(len(x)):
            row_q, row_k = q[t], k[t]
            if rotate:
                angles = t * 1e4 ** (-torch.arange(0, head_width, 2, dtype=x.dtype) / head_width)
                row_q, row_k = rotated(row_q, angles), rotated(row_k, angles)
            state = gamma * state + torch.outer(row_k, v[t])
            outputs.append(row_q @ state / head_width**0.5)
        return torch.stack(outputs)

    return by_heads(block, x, one_head, **around)


@register_reference("gla")
def gla(block, x, *, head_width, **around):
    down, up = block.decay
    decays = sigmoid(x @ down.weight.T @ up.weight.T + up.bias) ** (1 / 16)
    decays = decays.clamp(min=math.exp(-5))

    def next_state(head, t, state, k, v):
        alpha = decays[t, head * head_width : (head + 1) * head_width]
        return alpha[:, None] * state + torch.outer(k, v)

    return by_states(block, x, next_state, head_width=head_width, **around)


def decays_of_heads(rates, x):
    """Return the decay of each head at each position, (length, heads)."""
    steps = torch.log(1 + torch.exp(x @ rates.map.weight.T + rates.step_offset))
    return torch.exp(-torch.exp(rates.log_rate) * steps)


@register_reference("delta")
def delta(block, x, *, gate, negative, **around):
    betas = (2 if negative else 1) * sigmoid(x @ block.beta.weight.T)

    def next_state(head, t, state, k, v):
        held = (decays_of_heads(block.rates, x)[t, head] if gate else 1) * state
        return held + betas[t, head] * torch.outer(k, v - k @ held)

    return by_states(block, x, next_state, **around)


@register_reference("delta_product")
def delta_product(block, x, *, n, gate, negative, heads, head_width, qk_norm, head_norm, output_gate, **_):
    betas = (2 if negative else 1) * sigmoid((x @ block.beta.weight.T).view(len(x), n, heads))
    rows = mapped(block, x).view(len(x), 1 + 2 * n, heads, head_width)
    decays = decays_of_heads(block.rates, x) if gate else torch.ones(len(x), heads, dtype=x.dtype)
    held, outputs = torch.zeros(heads, head_width, head_width, dtype=x.dtype), []
    for t, row in enumerate(rows):
        states, read = [], []
        for h, state in enumerate(held):
            vectors = row[: 1 + n, h]
            if qk_norm == "l2":
                vectors = unit(vectors)
            state = decays[t, h] * state
            for key, value, beta in zip(vectors[1:], row[1 + n :, h], betas[t, :, h], strict=True):
                state = state + beta * torch.outer(key, value - key @ state)
            states.append(state)
            read.append(vectors[0] @ state / head_width**0.5)
        held = torch.stack(states)
        outputs.append(torch.stack(read))
    return merged(block, torch.stack(outputs), x, head_norm, output_gate)


def channel_decays(rates, x, heads):
    """Return the decay of each key channel at each position, (length, heads, keys), at least e⁻⁵."""
    down, up = rates.map
    raw = (x @ down.weight.T @ up.weight.T).view(len(x), heads, -1) + rates.step_offset
    return torch.exp(-(torch.log(1 + torch.exp(raw)) * torch.exp(rates.log_rate)).clamp(max=5))


@register_reference("kda")
def kda(block, x, *, heads, **around):
    betas = sigmoid(x @ block.beta.weight.T)
    decays = channel_decays(block.rates, x, heads)

    def next_state(head, t, state, k, v):
        state = torch.diag(decays[t, head]) @ state
        return state + betas[t, head] * torch.outer(k, v - k @ state)

    return by_states(block, x, next_state, **around)


@register_reference("rwkv7")
def rwkv7(block, x, *, head_width, **around):
    g = block.gates
    slow = torch.tanh(x @ g.decay_in.weight.T) @ g.decay_out.weight.T + g.decay_offset
    decays = torch.exp(-(2.718281828459045**-0.5) * sigmoid(slow))
    rates = sigmoid(x @ g.rate_in.weight.T @ g.rate_out.weight.T + g.rate_offset)

    def one_head(head, q, k, v):
        own = slice(head * head_width, (head + 1) * head_width)
        state, outputs = torch.zeros(head_width, head_width, dtype=x.dtype), []
        for t in range(len(x)):
            removed, rate = unit(k[t] * g.removal[own]), rates[t, own]
            key = k[t] * (1 + (rate - 1) * g.replacement[own])
            transition = torch.diag(decays[t, own]) - torch.outer(rate * removed, removed)
            state = transition @ state + torch.outer(key, v[t])
            outputs.append(q[t] @ state + (g.bonus[own] * q[t] * key).sum() * v[t])
        return torch.stack(outputs)

    return by_heads(block, x, one_head, **around)


@register_reference("mlstm")
def mlstm(block, x, *, forget, head_width, **around):
    gates = block.gates
    w_i, w_f = gates.map.weight.chunk(2)
    opened = torch.exp(x @ w_i.T + gates.input_offset)
    raw = x @ w_f.T + gates.forget_offset
    kept = torch.exp(raw) if forget == "exp" else sigmoid(raw)

    def one_head(head, q, k, v):
        memory, norm = torch.zeros(head_width, head_width, dtype=x.dtype), torch.zeros_like(k[0])
        outputs = []
        for t in range(len(x)):
            key = k[t] / head_width**0.5
            memory = kept[t, head] * memory + opened[t, head] * torch.outer(key, v[t])
            norm = kept[t, head] * norm + opened[t, head] * key
            outputs.append(q[t] @ memory / (q[t] @ norm).abs().clamp(min=1))
        return torch.stack(outputs)

    return by_heads(block, x, one_head, **around)


@register_reference("ssd")
def ssd(block, x, *, heads, head_width, state, qk_norm, head_norm, output_gate, **_):
    q, k, v = mapped(block, x).split([state, state, heads * head_width], 1)
    if qk_norm == "l2":
        q, k = unit(q), unit(k)
    steps = torch.log(1 + torch.exp(x @ block.rates.map.weight.T + block.rates.step_offset))
    outputs, held = [], [torch.zeros(state, head_width, dtype=x.dtype) for _ in range(heads)]
    for t in range(len(x)):
        row = []
        for h, value in enumerate(v[t].view(heads, head_width)):
            decay = torch.exp(-torch.exp(block.rates.log_rate[h]) * steps[t, h])
            held[h] = decay * held[h] + steps[t, h] * torch.outer(k[t], value)
            row.append(q[t] @ held[h] + block.skip[h] * value)
        outputs.append(torch.stack(row))
    return merged(block, torch.stack(outputs), x, head_norm, output_gate)


@register_reference("ttt")
def ttt(block, x, *, heads, head_width, batch, **around):
    rates = sigmoid(x @ block.rate.weight.T + block.rate.bias) / head_width
    ones = torch.ones(1, dtype=x.dtype)

    def norm(u, head):
        unit = (u - u.mean()) / torch.sqrt(((u - u.mean()) ** 2).mean() + 1e-6)
        return block.inner.gain[head, 0] * unit + block.inner.offset[head, 0]

    def one_head(head, q, k, v):
        held = now = block.inner.begin[head]
        outputs = []
        for t in range(len(x)):
            held = now if t % batch == 0 else held

            def loss(weights, t=t):
                return ((k[t] + norm(torch.cat([k[t], ones]) @ weights, head) - v[t]) ** 2).sum() / 2

            now = now - rates[t, head] * torch.func.grad(loss)(held)
            outputs.append(q[t] + norm(torch.cat([q[t], ones]) @ now, head))
        return torch.stack(outputs)

    return by_heads(block, x, one_head, **around)
