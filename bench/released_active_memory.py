"""The model of *Active memory in a Transformer* with the operations of its released program.

The model follows Active_Memory_Transformer.py and util_code.py at the sizes of Algorithmic-Tasks/main.py,
with torch in place of TensorFlow. Norms and GELU are computed step by step, attention has a mask of zeros,
and timing signals are computed before each layer.
"""

from __future__ import annotations

import math
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional

LAYERS, WIDTH, HEADS, HEAD_WIDTH, FILTER, KERNEL, DROPPED = 4, 128, 8, 64, 512, 20, 0.1
RECIPES = {"sa": "4 * (sa(temperature=64) >> ff(512))", "conv": "4 * (conv(k=20, act=gelu_tanh) >> ff(512))"}
"""The equivalent recipe of each mixer."""

MODEL = {"dropout": DROPPED, "attention_dropout": DROPPED, "input_dropout": DROPPED, "norm_eps": 1e-6}
"""The equivalent settings of our model around the recipe."""


class ReleasedTransformer(nn.Module):
    """A Transformer with one kind of mixer, which predicts at each position."""

    def __init__(self, vocab: int, mixer: str) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(vocab, WIDTH))
        mixers = (SelfAttention() if mixer == "sa" else Convolution() for _ in range(LAYERS))
        self.layers = nn.ModuleList(part for each in mixers for part in (each, FeedForward()))
        self.norms = nn.ModuleList(LayerNorm() for _ in range(2 * LAYERS + 1))
        self.output = Dense(WIDTH, vocab)

    @classmethod
    @torch.no_grad()
    def of(cls, ours: nn.Module, mixer: str) -> Self:
        """Return the model with our model's weights."""
        own = ours.state_dict()
        made = cls(len(own["embedding.weight"]), mixer)
        found = {"table": own["embedding.weight"], "output.weights": own["output.weight"].T}
        found["output.bias"] = own["output.bias"]
        for place in range(2 * LAYERS + 1):
            norm = "norm" if place == 2 * LAYERS else f"body.layers.{place}.norm"
            found |= {
                f"norms.{place}.scale": own[f"{norm}.weight"],
                f"norms.{place}.bias": own[f"{norm}.bias"],
            }
        for place, layer in enumerate(made.layers):
            assert isinstance(layer, SelfAttention | Convolution | FeedForward)
            part = f"body.layers.{place}.part."
            of_part = {name.removeprefix(part): each for name, each in own.items() if name.startswith(part)}
            found |= {f"layers.{place}.{name}": each for name, each in layer.weights_of(of_part).items()}
        made.load_state_dict(found)
        return made

    def forward(self, tokens: Tensor) -> Tensor:
        """Map (batch, length) to (batch, length, vocab)."""
        x = with_timing(functional.embedding(tokens, self.table) * WIDTH**0.5)
        x = self._drop(x)
        for place, (layer, norm) in enumerate(zip(self.layers, self.norms, strict=False)):
            if place % 2 == 0:
                x = with_timing(x)
            x = x + self._drop(layer(norm(x)))
        return self.output(self.norms[-1](x))

    def _drop(self, x: Tensor) -> Tensor:
        return functional.dropout(x, DROPPED, self.training)


class LayerNorm(nn.Module):
    """Layer normalisation over channels."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.bias = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise (batch, length, width)."""
        mean = x.mean(-1, keepdim=True)
        variance = (x - mean).square().mean(-1, keepdim=True)
        return (x - mean) * torch.rsqrt(variance + 1e-6) * self.scale + self.bias


class Dense(nn.Module):
    """A linear map of each position with weights (inputs, outputs)."""

    def __init__(self, inputs: int, outputs: int, *, bias: bool = True) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, length, inputs) to (batch, length, outputs)."""
        y = torch.tensordot(x, self.weights, dims=1)
        return y if self.bias is None else y + self.bias


class FeedForward(nn.Module):
    """Two linear maps with ReLU between them."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = Dense(WIDTH, FILTER), Dense(FILTER, WIDTH)

    @staticmethod
    def weights_of(ours: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the weights of our `ff`."""
        maps = {f"{name}.weights": ours[f"{name}.weight"].T for name in ("inner", "outer")}
        return maps | {f"{name}.bias": ours[f"{name}.bias"] for name in ("inner", "outer")}

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, length, width) to the same shape."""
        return self.outer(functional.dropout(self.inner(x).relu(), DROPPED, self.training))


class Convolution(nn.Module):
    """A convolution with SAME padding, followed by GELU."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.empty(WIDTH, WIDTH, KERNEL))  # as conv1d has them
        self.bias = nn.Parameter(torch.empty(WIDTH))

    @staticmethod
    def weights_of(ours: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the weights of our `conv`."""
        weights = ours["convolution.weight"].transpose(1, 2)
        return {"weights": weights, "bias": ours["convolution.bias"]}

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, length, width) to the same shape."""
        left = (KERNEL - 1) // 2
        padded = functional.pad(x.transpose(1, 2), (left, KERNEL - 1 - left))
        y = functional.conv1d(padded, self.weights).transpose(1, 2) + self.bias
        return 0.5 * y * (1 + torch.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y.pow(3))))


class SelfAttention(nn.Module):
    """Attention with heads of width 64, whose scores are divided by √width and by width."""

    def __init__(self) -> None:
        super().__init__()
        inner = HEADS * HEAD_WIDTH
        self.q, self.k, self.v = (Dense(WIDTH, inner, bias=False) for _ in range(3))
        self.output = Dense(inner, WIDTH, bias=False)

    @staticmethod
    def weights_of(ours: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the weights of our `sa`."""
        maps = zip("qkv", ours["qkv.weight"].chunk(3), strict=True)
        return {f"{name}.weights": each.T for name, each in maps} | {
            "output.weights": ours["output.weight"].T
        }

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, length, width) to the same shape."""
        q, k, v = (one(x).unflatten(2, (HEADS, -1)).transpose(1, 2) for one in (self.q, self.k, self.v))
        scores = (q * HEAD_WIDTH**-0.5) @ k.transpose(2, 3) / HEAD_WIDTH
        scores = scores + torch.zeros(1, 1, *scores.shape[2:], device=x.device)
        weights = functional.dropout(scores.softmax(-1), DROPPED, self.training)
        return self.output((weights @ v).transpose(1, 2).flatten(2))


def with_timing(x: Tensor) -> Tensor:
    """Add timing signals, sines before cosines, to sequences."""
    steps, scales = (torch.arange(size, device=x.device).float() for size in (x.shape[1], WIDTH // 2))
    angles = steps[:, None] * torch.exp(scales * -(math.log(1e4) / (WIDTH // 2 - 1)))
    return x + torch.cat([angles.sin(), angles.cos()], 1)[None]
