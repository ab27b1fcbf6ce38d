"""Reference implementations of convolutions, feed-forward and recurrent layers, and pools."""

import math

import torch
from torch.nn import functional

from activemem.blocks.testing.references import register_reference

ACTS = {
    "relu": lambda x: x.clamp(min=0),
    "gelu": lambda x: 0.5 * x * (1 + torch.erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "tanh": torch.tanh,
    "leaky_relu": lambda x: torch.where(x > 0, x, 0.01 * x),
    "relu2": lambda x: x.clamp(min=0) ** 2,
}


def sigmoid(x):
    return 1 / (1 + torch.exp(-x))


GATES = {
    "silu": lambda x: x * sigmoid(x),
    "gelu": ACTS["gelu"],
    "relu": ACTS["relu"],
    "sigmoid": sigmoid,
    "none": lambda x: x,
}


def hardsig(x):
    return torch.clip(1.2 / (1 + torch.exp(-x)) - 0.1, 0, 1)


def convolve(weight, bias, x, *, causal, before=None, after=None):
    """Convolve x (length, width) with a weight (outputs, k, width).

    `before` and `after` are the rows of padding on the left and on the right, by default zeros.
    """
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


@register_reference("conv")
def conv(block, x, *, causal, act="relu", **_):
    c = block.convolution
    return ACTS[act](convolve(c.weight, c.bias, x, causal=causal))


@register_reference("persistent_conv")
def persistent_conv(block, x, *, causal, act="relu", **_):
    c, p = block.convolution, block.padding
    return ACTS[act](convolve(c.weight, c.bias, x, causal=causal, before=p.left, after=p.right))


@register_reference("highway_conv")
def highway_conv(block, x, *, causal, **_):
    (wa, wg), (ba, bg) = block.convolution.weight.chunk(2), block.convolution.bias.chunk(2)
    a = convolve(wa, ba, x, causal=causal)
    g = hardsig(convolve(wg, bg, x, causal=causal))
    return a * g + x * (1 - g)


@register_reference("cgru")
def cgru(block, x, *, causal, **_):
    (wu, wr), (bu, br) = block.gates.weight.chunk(2), block.gates.bias.chunk(2)
    u = hardsig(convolve(wu, bu, x, causal=causal))
    r = hardsig(convolve(wr, br, x, causal=causal))
    candidate = torch.tanh(convolve(block.candidate.weight, block.candidate.bias, r * x, causal=causal))
    return u * x + (1 - u) * candidate


@register_reference("ff")
def ff(block, x, *, act="relu", **_):
    rows = [block.outer.weight @ ACTS[act](block.inner.weight @ row + block.inner.bias) for row in x]
    return torch.stack(rows) + block.outer.bias


@register_reference("glu")
def glu(block, x, *, act, **_):
    w, v = block.inner.weight.chunk(2)
    return torch.stack([block.outer.weight @ (GATES[act](w @ row) * (v @ row)) for row in x])


@register_reference("activation")
def activation(_block, x, *, act="relu", **_):
    return torch.stack([ACTS[act](row) for row in x])


@register_reference("dense")
def dense(block, x, *, act="relu", **_):
    return torch.stack([ACTS[act](block.map.weight @ row + block.map.bias) for row in x])


def rms(rows, weight):
    return rows / torch.sqrt((rows * rows).mean(-1, keepdim=True) + 1e-5) * weight


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


def lstm_layer(layer, x, h, s):
    """Return outputs, cells and gates of each step.

    The sequence x is (length, width), and the first state h and s is (width,) each.
    """
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
    """Return outputs and gates of each step.

    The sequence x is (length, width), and the first state h is (width,).
    """
    wr, wz, wn = layer.weight_x.chunk(3)
    ur, uz, un = layer.weight_h.chunk(3)
    br, bz, bn = layer.bias.chunk(3)
    steps = []
    for row in x:
        r, z = sigmoid(wr @ row + ur @ h + br), sigmoid(wz @ row + uz @ h + bz)
        h = (1 - z) * torch.tanh(wn @ row + bn + r * (un @ h + layer.state_bias)) + z * h
        steps.append((h, r, z))
    return [torch.stack(each) for each in zip(*steps, strict=True)]


@register_reference("lstm")
def lstm(block, x, **_):
    for layer in block.layers:
        x = lstm_layer(layer, x, torch.zeros_like(x[0]), torch.zeros_like(x[0]))[0]
    return x


@register_reference("gru")
def gru(block, x, **_):
    for layer in block.layers:
        x = gru_layer(layer, x, torch.zeros_like(x[0]))[0]
    return x


@register_reference("attention_pool")
def attention_pool(block, x, **_):
    weights = [torch.exp(torch.tanh(block.score.weight[0] @ row + block.score.bias[0])) for row in x]
    return sum(weight * row for weight, row in zip(weights, x, strict=True)) / sum(weights)


@register_reference("mean_pool")
def mean_pool(_block, x, **_):
    return sum(x) / len(x)


@register_reference("last")
def last(_block, x, **_):
    return x[-1]


def implicit_filters(network, lags):
    """Return the taps of each long convolution, (filters, channels, lags), computed lag by lag."""
    columns = []
    count, channels = network.skip.shape
    for lag in range(lags):
        share = torch.tensor(lag, dtype=torch.float64) / max(1, network.taps - 1)
        angles = 2 * math.pi * lag / network.taps * torch.linspace(1e-4, 15, 16, dtype=torch.float64)
        h = torch.cat([share[None], torch.cos(angles), -torch.sin(angles)])
        for layer in network.maps:
            h = torch.sin(network.frequencies.weight * (layer.weight @ h + layer.bias))
        rates = [1 / 1.5 + c * (1 / 0.3 - 1 / 1.5) / max(1, channels - 1) for c in range(channels)]
        window = torch.tensor([0.01 ** (float(share) * rate) for rate in rates], dtype=torch.float64)
        taps = (network.output.weight @ h).view(count, channels) * window
        columns.append(taps + network.skip if lag == 0 else taps)
    return torch.stack(columns, 2)


def channel_convolution(taps, x):
    """Convolve each channel of x (length, channels) with its own taps (channels, lags)."""
    y = torch.zeros_like(x)
    for s in range(min(len(x), taps.shape[1])):
        y = y + torch.cat([x.new_zeros(s, x.shape[1]), taps[:, s] * x[: len(x) - s]])
    return y


@register_reference("base_conv")
def base_conv(block, x, *, k, filter="explicit", **_):
    taps = block.explicit.weight.flip(0).T if filter == "explicit" else implicit_filters(block.implicit, k)[0]
    return (x @ block.map.weight.T + block.map.bias) * (channel_convolution(taps, x) + block.bias)


@register_reference("hyena")
def hyena(block, x, *, order, k, short_conv, **_):
    rows = x @ block.input.weight.T + block.input.bias
    if short_conv:
        rows = channel_convolution(block.short_conv.weight.flip(0).T, rows)
    *gates, z = rows.chunk(order + 1, 1)
    for place, taps in zip(range(order - 1, 0, -1), implicit_filters(block.filters, k), strict=True):
        z = channel_convolution(taps, gates[place] * z)
    return (gates[0] * z) @ block.output.weight.T
