"""Hand-written joint training of several models: stacked weights, grouped convolutions, batched products.

The method of Wang et al. 2021 (Horizontally Fused Training Array), applied to `4 * (mixer >> ff)`: each layer
is one operation for all models, which computes the same numbers as separate models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from activemem.engine.objectives.base import Stackable, on_device
from activemem.engine.trial.training import Training

LAYERS = 8


class FusedModels(nn.Module):
    """Models of several trainings of one recipe, `4 * (sa(heads=4) >> ff)` or `4 * (conv >> ff)`."""

    def __init__(self, trainings: Sequence[Training], heads: int = 4) -> None:
        super().__init__()
        own = [training.model.state_dict() for training in trainings]
        self.trials, self.heads = len(own), heads
        config = trainings[0].model.config
        self.dropout, self.inner_dropout = config.settings.dropout, config.settings.inner_dropout
        # from equal seeds, a CPU would predict the branches of a draw and take a quarter less time for it
        self.noises = [
            torch.Generator(training.device).manual_seed(training.settings.seed) for training in trainings
        ]
        self.stacked = nn.ParameterDict(
            {name.replace(".", "_"): torch.stack([each[name] for each in own]) for name in own[0]}
        )
        width = config.settings.d_model
        steps = torch.arange(200)[:, None] / 1e4 ** (torch.arange(width // 2) / (width // 2 - 1))
        self.register_buffer("timing", torch.cat([steps.sin(), steps.cos()], 1).to(trainings[0].device))

    def forward(self, tokens: Tensor) -> Tensor:
        """Map (trials, batch, length) to (trials, batch, length, vocab)."""
        trials, batch, length = tokens.shape
        vocab, width = self._weight("embedding").shape[1:]
        offsets = vocab * torch.arange(trials, device=tokens.device)[:, None, None]
        x = functional.embedding(tokens + offsets, self._weight("embedding").flatten(0, 1)) * width**0.5
        timing = self.get_buffer("timing")[:length]
        x = (x + timing).flatten(1, 2)  # (trials, batch · length, width)
        for layer in range(LAYERS):
            if layer % 2 == 0:
                x = (x.unflatten(1, (batch, length)) + timing).flatten(1, 2)
            y = self._norm(x, f"body_layers_{layer}_norm")
            mix = self._channels if layer % 2 else self._convolve if self._is_conv else self._attend
            x = x + self._drop(mix(y, f"body_layers_{layer}_part", batch), self.dropout)
        return self._linear(self._norm(x, "norm"), "output").unflatten(1, (batch, length))

    def losses(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of each model, (trials,); the gradients of their sum equal those of each alone."""
        each = functional.cross_entropy(self(tokens).flatten(0, 2), targets.flatten(), reduction="none")
        return each.view(self.trials, -1).mean(1)

    @property
    def _is_conv(self) -> bool:
        return "body_layers_0_part_convolution_weight" in self.stacked

    def _weight(self, name: str, kind: str = "weight") -> Tensor:
        return self.stacked[f"{name}_{kind}"]

    def _linear(self, x: Tensor, name: str) -> Tensor:
        """Map (trials, rows, inputs) to (trials, rows, outputs)."""
        weight = self._weight(name).transpose(1, 2)
        if f"{name}_bias" not in self.stacked:
            return torch.bmm(x, weight)
        return torch.baddbmm(self._weight(name, "bias")[:, None], x, weight)

    def _norm(self, x: Tensor, name: str) -> Tensor:
        normed = functional.layer_norm(x, x.shape[-1:], eps=1e-6)
        return torch.addcmul(self._weight(name, "bias")[:, None], normed, self._weight(name)[:, None])

    def _channels(self, x: Tensor, name: str, batch: int) -> Tensor:
        del batch
        rows = self._drop(self._linear(x, f"{name}_inner").relu(), self.inner_dropout)
        return self._linear(rows, f"{name}_outer")

    def _drop(self, x: Tensor, rate: float) -> Tensor:
        """Apply dropout to (trials, …), with random numbers from each model's own generator."""
        if not self.training:
            return x
        kept = torch.empty_like(x, memory_format=torch.contiguous_format)
        for own, noise in zip(kept, self.noises, strict=True):
            own.bernoulli_(1.0 - rate, generator=noise)
        return x * kept.div_(1.0 - rate)

    def _convolve(self, x: Tensor, name: str, batch: int) -> Tensor:
        weight, bias = self._weight(f"{name}_convolution"), self._weight(f"{name}_convolution", "bias")
        kernel = weight.transpose(2, 3).flatten(0, 1)  # (trials · width, width, taps)
        rows = x.unflatten(1, (batch, -1)).permute(1, 0, 3, 2).flatten(1, 2)
        taps = kernel.shape[-1]
        padded = functional.pad(rows, ((taps - 1) // 2, taps - 1 - (taps - 1) // 2))
        y = functional.conv1d(padded, kernel, bias.flatten(), groups=self.trials)
        return y.relu().unflatten(1, (self.trials, -1)).permute(1, 0, 3, 2).flatten(1, 2)

    def _attend(self, x: Tensor, name: str, batch: int) -> Tensor:
        rows = self._linear(x, f"{name}_qkv").unflatten(1, (batch, -1)).unflatten(3, (3, self.heads, -1))
        q, k, v = rows.permute(3, 0, 1, 4, 2, 5).flatten(1, 2).unbind(0)  # (trials · batch, heads, length, …)
        y = functional.scaled_dot_product_attention(q, k, v)
        return self._linear(
            y.transpose(1, 2).flatten(2).unflatten(0, (self.trials, batch)).flatten(1, 2), f"{name}_output"
        )


def draw_of(training: Training) -> Callable[[], tuple[Tensor, ...]]:
    """Return the function that draws the next batch of a training as tensors on the CPU."""
    assert isinstance(training.objective, Stackable), "expected an algorithmic task"
    return training.objective.draw


def fused_steps(trainings: Sequence[Training]) -> Callable[[], None]:
    """Return a joint step of all trainings, each with its own batches, which adds up the loss of each."""
    models = FusedModels(trainings).train()
    total = torch.zeros(len(trainings), device=trainings[0].device)
    optimizer = torch.optim.Adam(models.parameters(), lr=2e-3, fused=True)
    draws = [draw_of(training) for training in trainings]

    def step() -> None:
        drawn = zip(*(draw() for draw in draws), strict=True)
        tokens, targets = (on_device(torch.stack(alike), trainings[0].device) for alike in drawn)
        optimizer.zero_grad()
        losses = models.losses(tokens, targets)
        losses.sum().backward()
        optimizer.step()
        total.add_(losses.detach())

    return step


def check(trainings: Sequence[Training]) -> None:
    """Assert that the fused models give the same outputs as each model alone."""
    fused = FusedModels(trainings).eval()
    tokens = torch.stack([draw_of(training)()[0] for training in trainings]).to(trainings[0].device)
    with torch.no_grad():
        found = fused(tokens)
        for each, training, own in zip(found, trainings, tokens, strict=True):
            torch.testing.assert_close(each, training.model.eval()(own), rtol=1e-3, atol=1e-4)
            training.model.train()
