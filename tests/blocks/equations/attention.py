"""Reference of windowed attention, which collects keys one by one for each query and head."""

import math

import torch

from activemem.blocks.layers.window_attention import WindowedBlock
from activemem.blocks.testing.references import register_reference

from .common import rms, sigmoid


def capped(score, cap):
    """Return a score, limited to ±`cap` if the cap is not 0."""
    return cap * (1 - 2 / (1 + torch.exp(2 * score / cap))) if cap else score


def attend(query, seen, cap=0.0):
    """Return softmax attention of a query over the positions that it sees.

    `seen` has a (key, value, factor) for each position. The factor multiplies the exponential of the score.
    """
    if not seen:
        return torch.zeros_like(query)
    scores = [capped(query @ key / math.sqrt(len(query)), cap) for key, _, _ in seen]
    weights = [weight * torch.exp(score) for score, (_, _, weight) in zip(scores, seen, strict=True)]
    return sum(weight * value for weight, (_, value, _) in zip(weights, seen, strict=True)) / sum(weights)


def window(block, head, t, keys, values, *, causal, span, itself, ramp, pos_values):
    """Return (key, value, weight factor) of each position that position t sees in one head.

    The factor multiplies the exponential of the score: 1, or less on the ramp of a learned span.
    """
    nearest, furthest = (0 if itself else 1, span - itself) if causal else (-span, span)
    seen = []
    for source in range(len(keys)):
        distance = t - source
        if not nearest <= distance <= furthest:
            continue
        key, value, weight = keys[source], values[source], torch.ones((), dtype=keys.dtype)
        if isinstance(block, WindowedBlock) and block.window.positions is not None:
            vector = block.window.positions.weight[furthest - distance]
            key, value = key + vector, value + vector if pos_values else value
        if ramp is not None:
            reached = ramp + block.window.spans.z[head] * span
            weight = ((reached - abs(distance) + max(0, nearest)) / ramp).clip(0, 1)
        seen.append((key, value, weight))
    return seen


def persistent_vectors(block, head):
    """Return the persistent vectors of one head."""
    persistent = block.persistent
    if persistent is None:
        return []
    (_, count, width), one = persistent.keys.shape, torch.ones((), dtype=persistent.keys.dtype)
    return [
        (math.sqrt(width) * key, math.sqrt(count) * value, one)
        for key, value in zip(persistent.keys[head], persistent.vectors[head], strict=True)
    ]


def project_heads(weight, x, heads):
    """Project x to heads, (heads, length, head_width)."""
    return torch.stack([x @ one.T for one in weight.chunk(heads)])


def _queries_and_windows(block, x, heads, *, causal, relative=True, **settings):
    """Return queries (heads, length, head_width), and the keys and values that each of them sees.

    For each head and position, these are the (key, value, factor) of each position that the query sees.
    """
    q = project_heads(block.query.weight, x, block.heads)
    k, v = (project_heads(weight, x, heads) for weight in block.key_value.weight.chunk(2))
    return q, _windows(block, k, v, causal=causal, relative=relative, **settings)


def _windows(block, k, v, *, causal, relative, span, adaptive=False, ramp=32, pos_values=False, **given):
    settings = {
        "causal": causal,
        "span": span,
        "itself": given.get("self", False) or not relative,
        "ramp": ramp if adaptive else None,
        "pos_values": pos_values,
    }
    heads, length, _ = k.shape
    return [
        [window(block, head, t, k[head], v[head], **settings) for t in range(length)] for head in range(heads)
    ]


def turned(rows):
    """Rotate pairs of neighbouring channels of each row (…, width) by angles that grow with its position."""
    width = rows.shape[-1]
    rates = 1e4 ** -(torch.arange(0, width, 2, dtype=rows.dtype) / width)
    angles = torch.arange(rows.shape[-2], dtype=rows.dtype)[:, None] * rates
    pairs = torch.view_as_complex(rows.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.exp(1j * angles)).flatten(-2)


@register_reference("sa")
def sa(block, x, *, causal, heads, head_width, pos="none", span=0, temperature=1.0, kv_heads=0, **settings):
    shared = kv_heads or heads
    weights = block.qkv.weight.split([heads * head_width, *[shared * head_width] * 2])
    q, k, v = (project_heads(w, x, len(w) // head_width) for w in weights)
    if settings.pop("qk_norm", "none") == "rms":
        norms = (block.query_norm, block.key_norm)
        q, k = (rms(each, norm.weight) for each, norm in zip((q, k), norms, strict=True))
    if pos == "rope":
        q, k = turned(q), turned(k)
    k, v = (torch.stack([each[h * shared // heads] for h in range(heads)]) for each in (k, v))
    cap = settings.pop("logit_cap", 0.0)
    if pos in ("alibi", "t5"):
        return biased(block, x, q / temperature, k, v, pos=pos, causal=causal, cap=cap)
    q = q / temperature
    seen = _windows(block, k, v, causal=causal, relative=pos == "relative", span=span or len(x), **settings)
    rows = [torch.cat([attend(q[h, t], seen[h][t], cap) for h in range(heads)]) for t in range(len(x))]
    return torch.stack(rows) @ block.output.weight.T


def bucket(distance, *, causal):
    """Return the number of a distance's bucket, a range of distances, as in T5's released program."""
    side, offset = (32, 0) if causal else (16, 16 * (distance < 0))
    steps, exact = max(0, distance) if causal else abs(distance), side // 2
    if steps < exact:
        return offset + steps
    grown = math.log(steps / exact) / math.log(128 / exact) * (side - exact)
    return offset + min(exact + int(grown), side - 1)


def biased(block, x, q, k, v, *, pos, causal, cap):
    """Return softmax attention whose scores have a bias for each distance."""
    outputs, heads = [], len(q)
    for h in range(heads):
        rows = []
        for t in range(len(x)):
            seen = range(t + 1 if causal else len(x))
            slope = 2 ** (-8 * (h + 1) / heads)
            added = [-slope * abs(t - j) for j in seen]
            if pos == "t5":
                added = [block.bias.weight[h, bucket(t - j, causal=causal)] for j in seen]
            scores = [capped(q[h, t] @ k[h, j] / q.shape[2] ** 0.5, cap) + added[j] for j in seen]
            weights = torch.softmax(torch.stack(scores), 0)
            rows.append(weights @ v[h, : len(weights)])
        outputs.append(torch.stack(rows))
    return torch.cat(outputs, 1) @ block.output.weight.T


@register_reference("all_attn")
def all_attn(block, x, *, causal, heads, **settings):
    q, seen = _queries_and_windows(block, x, heads, causal=causal, **settings)
    rows = [
        torch.cat([attend(q[h, t], seen[h][t] + persistent_vectors(block, h)) for h in range(heads)])
        for t in range(len(x))
    ]
    return torch.stack(rows) @ block.output.weight.T


@register_reference("attn_split")
def attn_split(block, x, *, causal, heads, **settings):
    q, seen = _queries_and_windows(block, x, heads, causal=causal, **settings)
    rows = [
        torch.cat(
            [
                attend(q[h, t], seen[h][t]) + attend(q[h, t], persistent_vectors(block, h))
                for h in range(heads)
            ]
        )
        for t in range(len(x))
    ]
    return torch.stack(rows) @ block.output.weight.T


@register_reference("head_split")
def head_split(block, x, *, causal, heads, **settings):
    half = heads // 2
    q, seen = _queries_and_windows(block, x, half, causal=causal, **settings)
    rows = [
        torch.cat(
            [attend(q[h, t], seen[h][t]) for h in range(half)]
            + [attend(q[half + h, t], persistent_vectors(block, h)) for h in range(half)]
        )
        for t in range(len(x))
    ]
    return torch.stack(rows) @ block.output.weight.T


@register_reference("single_head")
def single_head(block, x, *, causal, heads, **settings):
    q, seen = _queries_and_windows(block, x, heads, causal=causal, **settings)
    rows = [
        torch.cat([attend(q[h, t], seen[h][t]) for h in range(heads)])
        + attend(torch.cat([*q[:, t]]), persistent_vectors(block, 0))
        for t in range(len(x))
    ]
    return torch.stack(rows) @ block.output.weight.T


@register_reference("ff_attn")
def ff_attn(block, x, *, bare=False, **_):
    vectors = persistent_vectors(block, 0)
    if bare:
        return torch.stack([attend(row, vectors) for row in x])
    return torch.stack([block.output.weight @ attend(block.query.weight @ row, vectors) for row in x])


@register_reference("fox")
def fox(block, x, *, heads, head_width, **_):
    q, k, v = (x @ block.qkv.weight.T).view(len(x), 3, heads, head_width).unbind(1)
    gates = sigmoid(x @ block.gate.weight.T + block.gate.bias)
    rows = []
    for i in range(len(x)):
        outputs = []
        for h in range(heads):
            kept = [gates[j + 1 : i + 1, h].prod() for j in range(i + 1)]
            weights = [kept[j] * torch.exp(q[i, h] @ k[j, h] / head_width**0.5) for j in range(i + 1)]
            outputs.append(sum(w * v[j, h] for j, w in enumerate(weights)) / sum(weights))
        rows.append(torch.cat(outputs))
    return torch.stack(rows) @ block.output.weight.T


def weighted(q, k, v, *, causal):
    """Return softmax attention of one head, computed row by row."""
    rows = []
    for t in range(len(q)):
        scores = torch.exp(k[: t + 1 if causal else None] @ q[t] / math.sqrt(q.shape[1]))
        rows.append(scores @ v[: len(scores)] / scores.sum())
    return torch.stack(rows)


@register_reference("diff_attn")
def diff_attn(block, x, *, causal, heads, head_width, share, pos="none", head_norm="rms"):
    q, k, v = (x @ weight.T for weight in block.qkv.weight.chunk(3))
    q, k = (torch.stack(each.split(head_width, 1)) for each in (q, k))
    if pos == "rope":
        q, k = turned(q), turned(k)
    u1, u2, w1, w2 = block.share.weight
    taken, outputs = torch.exp(u1 @ w1) - torch.exp(u2 @ w2) + share, []
    for h in range(heads):
        values = v[:, 2 * h * head_width : 2 * (h + 1) * head_width]
        both = [weighted(q[at], k[at], values, causal=causal) for at in (h, heads + h)]
        y = both[0] - taken * both[1]
        outputs.append((1 - share) * (rms(y, block.norm.weight) if head_norm == "rms" else y))
    return torch.cat(outputs, 1) @ block.output.weight.T


@register_reference("latent_attn")
def latent_attn(block, x, *, causal, heads, head_width, latent, rope_width, query_latent):
    mapped = x @ block.down.weight.T
    c, places = rms(mapped[:, :latent], block.norm.weight), mapped[:, latent:]
    turn = turned if rope_width else lambda rows: rows
    asked = rms(x @ block.query_down.weight.T, block.query_norm.weight) if query_latent else x
    queries = (asked @ block.query.weight.T).split(head_width + rope_width, 1)
    keys, values = (weight.split(head_width) for weight in block.up.weight.chunk(2))
    outputs = []
    for h in range(heads):
        q = torch.cat([queries[h][:, :head_width], turn(queries[h][:, head_width:])], 1)
        k = torch.cat([c @ keys[h].T, turn(places)], 1)
        outputs.append(weighted(q, k, c @ values[h].T, causal=causal))
    return torch.cat(outputs, 1) @ block.output.weight.T
