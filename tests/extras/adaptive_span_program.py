"""Reference implementation of the model and checkpoint of Sukhbaatar et al. 2019, position by position.

The weights are a dict of tensors with the program's own names, as `torch.nn.DataParallel` saves them.
"""

import math
from itertools import pairwise

import torch
from torch.nn import functional

CLUSTER_DIVISOR = 4


def random_weights(
    *,
    vocab,
    width,
    heads,
    layers,
    span,
    vectors=0,
    inner=0,
    adaptive=True,
    furthest=1.0,
    cutoffs=(),
    tied=True,
):
    """Return random weights in the program's order and shapes, with spans over their whole range."""
    generator, head_width = torch.Generator().manual_seed(0), width // heads
    weights = {}

    def draw(name, *shape, scale=0.5):
        weights[f"module.{name}"] = scale * torch.randn(shape, generator=generator)

    draw("key_pe", 1, head_width, span)
    if cutoffs:
        ends = [0, *cutoffs, vocab]
        for place, (start, end) in enumerate(pairwise(ends)):
            narrow = width // CLUSTER_DIVISOR**place
            draw(f"in_emb.emb_layers.{place}.weight", end - start, narrow)
            draw(f"in_emb.emb_projs.{place}", width, narrow, scale=0.1)
        draw("out_emb.cluster_proj.weight", len(cutoffs), width)
        draw("out_emb.cluster_proj.bias", len(cutoffs))
        for place, (start, end) in enumerate(pairwise(ends)):
            narrow = width // CLUSTER_DIVISOR**place
            draw(f"out_emb.out_layers.{place}.weight", end - start, narrow)
            draw(f"out_emb.out_layers.{place}.bias", end - start)
            draw(f"out_emb.out_projs.{place}", width, narrow)
            if tied:
                for theirs, ours in (
                    (f"out_layers.{place}.weight", f"emb_layers.{place}.weight"),
                    (f"out_projs.{place}", f"emb_projs.{place}"),
                ):
                    weights[f"module.out_emb.{theirs}"] = weights[f"module.in_emb.{ours}"]
    else:
        draw("in_emb.weight", vocab, width)
        draw("out_emb.weight", vocab, width)
        draw("out_emb.bias", vocab)
    for number in range(layers):
        layer = f"layers.{number}"
        if adaptive:
            spans = torch.linspace(0.05, furthest - 0.3 * furthest * number, heads).view(heads, 1, 1)
            masks = [f"{layer}.attn.attn.adaptive_span._mask"]
            if vectors:
                masks.append(f"{layer}.attn.attn.persistent_memory.adaptive_span._mask")
            for mask in masks:
                weights[f"module.{mask}.current_val"] = spans
                weights[f"module.{mask}.mask_template"] = torch.linspace(1 - span, 0, steps=span)
        if vectors:
            draw(f"{layer}.attn.attn.persistent_memory.key", heads, head_width, vectors)
            draw(f"{layer}.attn.attn.persistent_memory.val", heads, vectors, head_width)
        for kind in ("query", "out", "val", "key"):
            draw(f"{layer}.attn.proj_{kind}.weight", width, width)
        norms = ["norm1"]
        if not vectors:
            norms.append("norm2")
            draw(f"{layer}.ff.fc1.weight", inner, width)
            draw(f"{layer}.ff.fc1.bias", inner)
            draw(f"{layer}.ff.fc2.weight", width, inner)
            draw(f"{layer}.ff.fc2.bias", width)
        for norm in norms:
            draw(f"{layer}.{norm}.weight", width)
            draw(f"{layer}.{norm}.bias", width)
    return weights


class Program:
    """The program's model with given weights; it reads streams in chunks, after zero vectors."""

    def __init__(self, weights, *, heads, ramp=32, cutoffs=(), dtype=torch.float64):
        self.weights = {name.removeprefix("module."): each.to(dtype) for name, each in weights.items()}
        self.heads, self.ramp, self.cutoffs = heads, ramp, list(cutoffs)
        self.span = self.weights["key_pe"].shape[-1]
        self.layers = sum(name.endswith("norm1.weight") for name in self.weights)
        self.held = None

    def __call__(self, tokens):
        """Return log-probabilities (batch, block, symbols) of the next block."""
        h = self.embed(tokens)
        if self.held is None:
            self.held = [h.new_zeros(len(h), self.span, h.shape[-1]) for _ in range(self.layers)]
        for number in range(self.layers):
            seen = torch.cat([self.held[number], h], 1)
            self.held[number] = seen[:, -self.span :]
            layer = f"layers.{number}"
            h = self.norm(f"{layer}.norm1", h + self.attend(layer, h, seen))
            if f"{layer}.norm2.weight" in self.weights:
                inner = self.linear(f"{layer}.ff.fc1", h).clamp(min=0)
                h = self.norm(f"{layer}.norm2", h + self.linear(f"{layer}.ff.fc2", inner))
        return self.score(h)

    def embed(self, tokens):
        if not self.cutoffs:
            return self.weights["in_emb.weight"][tokens]
        vectors = []
        for token in tokens.flatten().tolist():
            place = sum(token >= cut for cut in self.cutoffs)
            row = self.weights[f"in_emb.emb_layers.{place}.weight"][token - [0, *self.cutoffs][place]]
            vectors.append(self.weights[f"in_emb.emb_projs.{place}"] @ row)
        whole = torch.stack(vectors).view(*tokens.shape, -1)
        return whole * whole.shape[-1] ** 0.5

    def attend(self, layer, h, seen):
        """Attend from each position to the positions before it within the span, and to persistent vectors."""
        batch, length, width = h.shape
        head_width = width // self.heads
        outputs = torch.zeros_like(h)
        for row in range(batch):
            for t in range(length):
                past = seen[row, t : t + self.span]  # the furthest first, the position itself left out
                q, k, v = (
                    (x @ self.weights[f"{layer}.attn.proj_{kind}.weight"].T).view(-1, self.heads, head_width)
                    for kind, x in (("query", h[row, t][None]), ("key", past), ("val", past))
                )
                for head in range(self.heads):
                    y = self.attend_head(layer, head, q[0, head], k[:, head], v[:, head])
                    outputs[row, t, head * head_width : (head + 1) * head_width] = y
        return outputs @ self.weights[f"{layer}.attn.proj_out.weight"].T

    def attend_head(self, layer, head, q, k, v):
        positions = self.weights["key_pe"][0].T
        scores = (k + positions) @ q
        vectors = f"{layer}.attn.attn.persistent_memory"
        persistent = f"{vectors}.key" in self.weights
        if persistent:
            keys = self.weights[f"{vectors}.key"][head].T  # (vectors, head width)
            scores = torch.cat([scores, keys @ q * math.sqrt(len(q))])
            values = self.weights[f"{vectors}.val"][head]
            v = torch.cat([v, values * math.sqrt(len(values))])
        attention = (scores / math.sqrt(len(q))).softmax(0)
        span = self.weights.get(f"{layer}.attn.attn.adaptive_span._mask.current_val")
        if span is not None:
            far = torch.arange(1 - self.span, 1) + span[head].item() * self.span
            mask = (far / self.ramp + 1).clamp(0, 1).to(attention)
            attention = torch.cat([attention[: self.span] * mask, attention[self.span :]])
            attention = attention / (attention.sum() + 1e-8)
        return attention @ v

    def score(self, h):
        if not self.cutoffs:
            return functional.log_softmax(self.linear("out_emb", h), -1)
        first = h @ self.weights["out_emb.out_projs.0"]
        head = [self.linear("out_emb.out_layers.0", first), self.linear("out_emb.cluster_proj", first)]
        head = functional.log_softmax(torch.cat(head, -1), -1)
        found = [head[..., : self.cutoffs[0]]]
        for place in range(1, len(self.cutoffs) + 1):
            narrow = h @ self.weights[f"out_emb.out_projs.{place}"]
            within = functional.log_softmax(self.linear(f"out_emb.out_layers.{place}", narrow), -1)
            found.append(head[..., -place, None] + within)
        return torch.cat(found, -1)

    def linear(self, name, x):
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, name, x):
        centred = x - x.mean(-1, keepdim=True)
        scaled = centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
        return scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]
