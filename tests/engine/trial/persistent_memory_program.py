"""Reference implementation of the model and training of Sukhbaatar et al. 2019, for small models.

A stream begins after zero vectors. Spans multiply the weights after the softmax, which are then divided by
their sum. Adagrad sums squares of unclipped gradients, and the rate of a weight is reduced if its gradient is
too large.
"""

import math

import torch
from torch.nn import functional


class Program:
    """A model and its training, with weights copied from ours into the program's layout."""

    def __init__(self, weights, *, layers, heads, span, ramp, lr, warmup, clip, span_loss):
        self.layers, self.heads, self.span, self.ramp = layers, heads, span, ramp
        self.lr, self.warmup, self.clip, self.span_loss = lr, warmup, clip, span_loss
        self.weights = {}
        for name, weight in weights.items():
            if name.endswith("positions.weight") and not name.startswith("body.layers.0."):
                continue  # the same for all layers
            maps = {"qkv.weight": 3, "key_value.weight": 2}.get(".".join(name.split(".")[-2:]), 1)
            for part, piece in zip("qkv"[-maps:], weight.chunk(maps), strict=True):
                kept = piece.detach().clone().requires_grad_()
                self.weights[name if maps == 1 else f"{name}.{part}"] = kept
        self.sums = {name: torch.zeros_like(weight) for name, weight in self.weights.items()}
        self.held, self.steps = None, 0

    def step(self, tokens, targets):
        """Train on a block of every row; return the loss in nats per token."""
        self.steps += 1
        for weight in self.weights.values():
            weight.grad = None
        loss = functional.cross_entropy(self.logits(tokens).flatten(0, 1), targets.flatten())
        spans = [weight for name, weight in self.weights.items() if name.endswith("spans.z")]
        (loss + sum(self.span_loss * self.span * z.mean() for z in spans)).backward()
        with torch.no_grad():
            for name, weight in self.weights.items():
                rate, norm = self.lr * min(1, self.steps / self.warmup), weight.grad.norm()
                if norm > self.clip:
                    rate = rate * self.clip / (norm + 1e-10)
                self.sums[name] += weight.grad**2
                weight -= rate * weight.grad / (self.sums[name].sqrt() + 1e-10)
            for z in spans:
                z.clamp_(0, 1)
        return loss.item()

    def logits(self, tokens):
        """Return (batch, length, symbols), keeping the inputs of each layer for the next block."""
        h = self.weights["embedding.weight"][tokens]
        if self.held is None:
            self.held = [torch.zeros(len(h), self.span, h.shape[-1])] * self.layers
        whole = self.layers if self.has_vectors else 2 * self.layers
        for place, sublayer in enumerate(range(0, whole, whole // self.layers)):
            seen = torch.cat([self.held[place], h], 1)
            self.held[place] = seen[:, -self.span :].detach()
            h = self.add_norm(sublayer, h, self.attend(sublayer, h, seen))
            if not self.has_vectors:
                h = self.add_norm(sublayer + 1, h, self.feed_forward(sublayer + 1, h))
        return h @ self.weights["output.weight"].T + self.weights["output.bias"]

    @property
    def has_vectors(self):
        return any("persistent" in name for name in self.weights)

    def of(self, sublayer, name):
        return self.weights[f"body.layers.{sublayer}.{name}"]

    def add_norm(self, sublayer, x, y):
        scale, shift = self.of(sublayer, "norm.weight"), self.of(sublayer, "norm.bias")
        return functional.layer_norm(x + y, x.shape[-1:], scale, shift)

    def feed_forward(self, sublayer, x):
        inner = x @ self.of(sublayer, "part.inner.weight").T + self.of(sublayer, "part.inner.bias")
        return inner.relu() @ self.of(sublayer, "part.outer.weight").T + self.of(sublayer, "part.outer.bias")

    def attend(self, sublayer, h, seen):
        merged = "key_value" if self.has_vectors else "qkv"
        query = "part.query.weight" if self.has_vectors else "part.qkv.weight.q"
        q, k, v = (
            (x @ self.of(sublayer, name).T).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for x, name in ((h, query), (seen, f"part.{merged}.weight.k"), (seen, f"part.{merged}.weight.v"))
        )  # (batch, heads, length, head width)
        length, width = q.shape[2:]
        keys, values = (each.unfold(2, self.span, 1)[:, :, :length].transpose(-1, -2) for each in (k, v))
        positions = self.of(0, "part.window.positions.weight")  # the furthest first, as the unfolded keys are
        scores = torch.einsum("bhtd,bhtsd->bhts", q, keys + positions)
        if self.has_vectors:
            vectors = self.of(sublayer, "part.persistent.keys") * math.sqrt(width)
            scores = torch.cat([scores, torch.einsum("bhtd,hnd->bhtn", q, vectors)], -1)
        weights = (scores / math.sqrt(width)).softmax(-1)
        z = self.of(sublayer, "part.window.spans.z")[:, None, None]
        fading = torch.arange(1 - self.span, 1) + z * self.span  # 0 at the position before
        faded = weights[..., : self.span] * (fading / self.ramp + 1).clamp(0, 1)
        weights = torch.cat([faded, weights[..., self.span :]], -1)
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-8)
        found = torch.einsum("bhts,bhtsd->bhtd", weights[..., : self.span], values)
        if self.has_vectors:
            vectors = self.of(sublayer, "part.persistent.vectors")
            vectors = vectors * math.sqrt(vectors.shape[1])
            found = found + torch.einsum("bhtn,hnd->bhtd", weights[..., self.span :], vectors)
        return found.transpose(1, 2).flatten(2) @ self.of(sublayer, "part.output.weight").T
