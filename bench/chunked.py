"""Layers with matrix states beside the chunked form that an expert would write, forward and backward.

The other layers use torch's products and autograd, in the chunked forms of the papers: Yang et al. 2024
(Gated Linear Attention Transformers, section 4), Yang et al. 2024 (Parallelizing Linear Transformers with the
Delta Rule, section 3), Dao and Gu 2024 (Mamba-2, section 6). They have our weights and give the same outputs.

python bench/chunked.py [SECONDS a measurement]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from attention import make_block, median_ms
from torch import Tensor, nn
from torch.nn import functional

WIDTH, HEADS, HEAD_WIDTH, BATCH, LENGTH = 128, 8, 16, 8, 256
SHAPE = f"heads={HEADS}, head_width={HEAD_WIDTH}"
ROOT_DEGREE = 16.0
"""The degree of the root that `gla` takes of its decays."""


def chunks(x: Tensor, size: int) -> Tensor:
    """Reshape (batch, length, heads, width) to (batch, heads, chunks, size, width)."""
    return x.transpose(1, 2).unflatten(2, (-1, size))


def joined(y: Tensor) -> Tensor:
    """Reshape (batch, heads, chunks, size, width) to (batch, length, heads, width)."""
    return y.flatten(2, 3).transpose(1, 2)


class ChunkedLayer(nn.Module):
    """Base class of the layers, with the maps to heads, the norms of heads, the gate and the last map."""

    def __init__(self, ours: nn.Module) -> None:
        super().__init__()
        self.weights = dict(ours.named_parameters())

    def heads(self, x: Tensor, maps: int) -> tuple[Tensor, ...]:
        """Return queries, keys and values of x, each (batch, length, heads, head_width)."""
        together = functional.linear(x, self.weights["qkv.weight"])
        return together.unflatten(2, (maps, HEADS, HEAD_WIDTH)).unbind(2)

    def finish(self, x: Tensor, y: Tensor) -> Tensor:
        """Normalise each head's output, multiply it by the gate if there is one, and map it to the width."""
        y = functional.rms_norm(y, (HEAD_WIDTH,), self.weights["norm.weight"], 1e-5).flatten(2)
        if "gate.weight" in self.weights:
            y = y * functional.silu(functional.linear(x, self.weights["gate.weight"]))
        return functional.linear(y, self.weights["output.weight"])


class ChunkedGla(ChunkedLayer):
    """Gated linear attention in chunks of 16 positions."""

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, length, width) to the same shape."""
        q, k, v = self.heads(x, 3)
        low = functional.linear(x, self.weights["decay.0.weight"])
        raw = functional.linear(low, self.weights["decay.1.weight"], self.weights["decay.1.bias"])
        log_decay = (functional.logsigmoid(raw) / ROOT_DEGREE).clamp(min=-5.0).unflatten(2, (HEADS, -1))
        q, k, v, log_decay = (chunks(each, 16) for each in (q * HEAD_WIDTH**-0.5, k, v, log_decay))
        total = log_decay.cumsum(-2)
        end = total[..., -1:, :]
        q, k, left = q * total.exp(), k * (-total).exp(), k * (end - total).exp()
        y = (q @ k.transpose(-1, -2)).tril() @ v
        added, kept = left.transpose(-1, -2) @ v, end.exp().transpose(-1, -2)
        state, read = torch.zeros_like(added[:, :, 0]), []
        for place in range(y.shape[2]):
            read.append(q[:, :, place] @ state)
            state = state * kept[:, :, place] + added[:, :, place]
        return self.finish(x, joined(y + torch.stack(read, 2)))


class ChunkedDelta(ChunkedLayer):
    """The delta rule in chunks of 32 positions, in its WY representation."""

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, length, width) to the same shape."""
        q, k, v = self.heads(x, 3)
        q, k = (each * (each.square().sum(-1, keepdim=True) + 1e-6).rsqrt() for each in (q, k))
        beta = torch.sigmoid(functional.linear(x, self.weights["beta.weight"])).unsqueeze(-1)
        q, k, v, scaled, wanted = (
            chunks(each, 32) for each in (q * HEAD_WIDTH**-0.5, k, v, k * beta, v * beta)
        )
        triangle = (scaled @ k.transpose(-1, -2)).tril(-1)
        both = torch.linalg.solve_triangular(
            triangle, torch.cat([wanted, scaled], -1), upper=False, unitriangular=True
        )
        new, erased = both.chunk(2, -1)
        weights = (q @ k.transpose(-1, -2)).tril()
        state, outputs = q.new_zeros(*q.shape[:2], HEAD_WIDTH, HEAD_WIDTH), []
        for place in range(q.shape[2]):
            moved = new[:, :, place] - erased[:, :, place] @ state
            outputs.append(q[:, :, place] @ state + weights[:, :, place] @ moved)
            state = state + k[:, :, place].transpose(-1, -2) @ moved
        return self.finish(x, joined(torch.stack(outputs, 2)))


class ChunkedSsd(ChunkedLayer):
    """The recurrence of Mamba-2 in chunks of 64 positions, with keys and queries that heads share."""

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, length, width) to the same shape."""
        together = functional.linear(x, self.weights["qkv.weight"])
        taps = self.weights["short_conv.weight"]  # (taps, channels)
        padded = functional.pad(together.transpose(1, 2), (len(taps) - 1, 0))
        together = functional.conv1d(padded, taps.t().unsqueeze(1), groups=taps.shape[1]).transpose(1, 2)
        q, k, v = functional.silu(together).split([HEAD_WIDTH, HEAD_WIDTH, HEADS * HEAD_WIDTH], 2)
        v = v.unflatten(2, (HEADS, HEAD_WIDTH))
        raw = functional.linear(x, self.weights["rates.map.weight"]) + self.weights["rates.step_offset"]
        steps = functional.softplus(raw)
        log_decay = -steps * self.weights["rates.log_rate"].exp()
        q, k = (each.unsqueeze(2) for each in (q, k))
        q, k, written = (chunks(each, 64) for each in (q, k, v * steps.unsqueeze(-1)))
        total = chunks(log_decay.unsqueeze(-1), 64).squeeze(-1).cumsum(-1)  # (batch, heads, chunks, size)
        later = torch.ones(64, 64, dtype=torch.bool, device=x.device).triu(1)
        decay = (total.unsqueeze(-1) - total.unsqueeze(-2)).masked_fill(later, -torch.inf).exp()
        y = (q @ k.transpose(-1, -2) * decay) @ written
        added = k.transpose(-1, -2) @ (written * (total[..., -1:] - total).exp().unsqueeze(-1))
        state, states = torch.zeros_like(added[:, :, 0]), []
        for place in range(y.shape[2]):
            states.append(state)
            state = state * total[:, :, place, -1:, None].exp() + added[:, :, place]
        y = y + q @ torch.stack(states, 2) * total.exp().unsqueeze(-1)
        return self.finish(x, joined(y) + v * self.weights["skip"][:, None])


class Form(NamedTuple):
    """A layer of ours, and the class of the same layer written in chunks."""

    recipe: str
    make: Callable[[nn.Module], ChunkedLayer]

    @property
    def what(self) -> str:
        """Return what is measured, in Markdown."""
        return f"`{self.recipe}`, width {WIDTH}, batch {BATCH}, length {LENGTH}"


FORMS = (
    Form(f"gla({SHAPE})", ChunkedGla),
    Form(f"delta({SHAPE})", ChunkedDelta),
    Form(f"ssd({SHAPE}, state={HEAD_WIDTH})", ChunkedSsd),
)


def compare(form: Form, seconds: float, device: torch.device) -> tuple[float, float]:
    """Return the milliseconds of our layer's passes and of the other's, after a check of equal outputs."""
    ours = make_block(form.recipe, device.type, width=WIDTH)
    theirs = form.make(ours).to(device)
    x = torch.randn(BATCH, LENGTH, WIDTH, device=device, requires_grad=True)
    with torch.no_grad():
        torch.testing.assert_close(theirs(x), ours(x), rtol=1e-3, atol=1e-4)
    found = median_ms({"ours": lambda: ours(x), "theirs": lambda: theirs(x)}, seconds, device)
    return found["ours"], found["theirs"]


def measured(seconds: float, device: torch.device) -> Iterator[tuple[str, float, float]]:
    """Yield what was measured, our milliseconds and those of the other layer."""
    for form in FORMS:
        yield form.what, *compare(form, seconds, device)


def main() -> None:
    """Print the results."""
    torch.set_num_threads(1)
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    for what, ours, theirs in measured(seconds, torch.device("cpu")):
        print(f"  {what:74} {ours:7.2f} ms   {ours / theirs:.3f} × its chunked form")


if __name__ == "__main__":
    main()
