"""The blocks once more, slow and plain: loops over positions, one sequence at a time, in double precision."""

import math

import torch
from torch.nn import functional

ACTS = {
    "relu": lambda x: x.clamp(min=0),
    "gelu": lambda x: 0.5 * x * (1 + torch.erf(x / math.sqrt(2))),
    "tanh": torch.tanh,
    "leaky_relu": lambda x: torch.where(x > 0, x, 0.01 * x),
}


def hardsig(x):
    return torch.clip(1.2 / (1 + torch.exp(-x)) - 0.1, 0, 1)


def convolve(weight, bias, x, *, causal, before=None, after=None):
    """Weight (outputs, k, width), x (length, width); `before` and `after` are padding rows, else zeros."""
    k, width = weight.shape[1:]
    left = k - 1 if causal else (k - 1) // 2
    right = k - 1 - left
    before = x.new_zeros(left, width) if before is None else before
    after = x.new_zeros(right, width) if after is None else after
    rows = [*before, *x, *after]
    outputs = []
    for t in range(len(x)):
        y = bias.clone()
        for j in range(k):
            y = y + weight[:, j] @ rows[t + j]
        outputs.append(y)
    return torch.stack(outputs)


def conv(block, x, *, causal, act="relu", **_):
    c = block.convolution
    return ACTS[act](convolve(c.weight, c.bias, x, causal=causal))


def persistent_conv(block, x, *, causal, act="relu", **_):
    c, p = block.convolution, block.padding
    return ACTS[act](convolve(c.weight, c.bias, x, causal=causal, before=p.left, after=p.right))


def highway_conv(block, x, *, causal, **_):
    (wa, wg), (ba, bg) = block.convolution.weight.chunk(2), block.convolution.bias.chunk(2)
    a = convolve(wa, ba, x, causal=causal)
    g = hardsig(convolve(wg, bg, x, causal=causal))
    return a * g + x * (1 - g)


def cgru(block, x, *, causal, **_):
    (wu, wr), (bu, br) = block.gates.weight.chunk(2), block.gates.bias.chunk(2)
    u = hardsig(convolve(wu, bu, x, causal=causal))
    r = hardsig(convolve(wr, br, x, causal=causal))
    candidate = torch.tanh(convolve(block.candidate.weight, block.candidate.bias, r * x, causal=causal))
    return u * x + (1 - u) * candidate


def ff(block, x, *, act="relu", **_):
    rows = [block.outer.weight @ ACTS[act](block.inner.weight @ row + block.inner.bias) for row in x]
    return torch.stack(rows) + block.outer.bias


def activation(_block, x, *, act="relu", **_):
    return torch.stack([ACTS[act](row) for row in x])


def dense(block, x, *, act="relu", **_):
    return torch.stack([ACTS[act](block.map.weight @ row + block.map.bias) for row in x])


def sa(block, x, *, causal, heads=8, head_width=64):
    wq, wk, wv = (w.reshape(heads, head_width, -1) for w in block.qkv.weight.chunk(3))
    outputs = []
    for t in range(len(x)):
        seen = range(t + 1) if causal else range(len(x))
        joined = []
        for h in range(heads):
            query = wq[h] @ x[t]
            scores = torch.stack([query @ (wk[h] @ x[s]) for s in seen]) / math.sqrt(head_width)
            weights = torch.exp(scores - scores.max())
            weights = weights / weights.sum()
            joined.append(sum(weight * (wv[h] @ x[s]) for weight, s in zip(weights, seen, strict=True)))
        outputs.append(block.output.weight @ torch.cat(joined))
    return torch.stack(outputs)


def norm(layer, x):
    return functional.layer_norm(x, x.shape[-1:], layer.weight, layer.bias, layer.eps)


def timing(length, width):
    signal = torch.zeros(length, width, dtype=torch.float64)
    half = width // 2
    for t in range(length):
        for i in range(half):
            angle = t / 1e4 ** (i / max(half - 1, 1))
            signal[t, i], signal[t, half + i] = math.sin(angle), math.cos(angle)
    return signal


def logits(model, tokens, apply, *, pre, mixes, timed=True):
    """A whole model on one sequence: sub-layer i is `apply[i]`, and gets timing if `mixes[i]`."""
    width = model.embedding.embedding_dim
    signal = timing(len(tokens), width) * timed
    x = model.embedding.weight[tokens] * math.sqrt(width) + signal
    for layer, part, mixing in zip(model.body.layers, apply, mixes, strict=True):
        x = x + signal * mixing
        x = x + part(layer.part, norm(layer.norm, x)) if pre else norm(layer.norm, x + part(layer.part, x))
    x = norm(model.norm, x) if pre else x
    return x @ model.output.weight.T + model.output.bias


def sigmoid(x):
    return 1 / (1 + torch.exp(-x))


def lstm_layer(layer, x, h, s):
    """One sequence (length, width) from a state (width,): outputs, cells and gates of each step."""
    wi, wf, wg, wo = layer.weight_x.chunk(4)
    ui, uf, ug, uo = layer.weight_h.chunk(4)
    bi, bf, bg, bo = layer.bias.chunk(4)
    steps = []
    for row in x:
        i, f, o = (sigmoid(w @ row + u @ h + b) for w, u, b in ((wi, ui, bi), (wf, uf, bf), (wo, uo, bo)))
        s = f * s + i * torch.tanh(wg @ row + ug @ h + bg)
        h = o * torch.tanh(s)
        steps.append((h, s, i, f, o))
    return [torch.stack(each) for each in zip(*steps, strict=True)]


def gru_layer(layer, x, h):
    """One sequence (length, width) from a state (width,): the outputs and the gates of each step."""
    wr, wz, wn = layer.weight_x.chunk(3)
    ur, uz, un = layer.weight_h.chunk(3)
    br, bz, bn = layer.bias.chunk(3)
    steps = []
    for row in x:
        r, z = sigmoid(wr @ row + ur @ h + br), sigmoid(wz @ row + uz @ h + bz)
        h = (1 - z) * torch.tanh(wn @ row + bn + r * (un @ h + layer.state_bias)) + z * h
        steps.append((h, r, z))
    return [torch.stack(each) for each in zip(*steps, strict=True)]


def lstm(block, x, **_):
    for layer in block.layers:
        x = lstm_layer(layer, x, torch.zeros_like(x[0]), torch.zeros_like(x[0]))[0]
    return x


def gru(block, x, **_):
    for layer in block.layers:
        x = gru_layer(layer, x, torch.zeros_like(x[0]))[0]
    return x


REFERENCES = {
    "activation": activation,
    "cgru": cgru,
    "conv": conv,
    "dense": dense,
    "ff": ff,
    "gru": gru,
    "highway_conv": highway_conv,
    "lstm": lstm,
    "persistent_conv": persistent_conv,
    "sa": sa,
}
