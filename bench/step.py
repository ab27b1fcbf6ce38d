"""Benchmark of a training step against plain PyTorch loops: with the same model, and with other models.

python bench/step.py [SECONDS a measurement]
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import released_active_memory
import torch
from clock import CPU, make_clock
from released_active_memory import ReleasedTransformer
from torch import Tensor, nn
from torch.nn import functional

from activemem.blocks import build
from activemem.engine.tasks.algorithmic import get_task
from activemem.engine.trial.training import Training
from activemem.studies.schema.settings import TrialSettings

RECIPES = ("4 * (sa >> ff(512))", "4 * (conv(k=20) >> ff(512))", "4 * (sa + highway_conv(k=20) >> ff(512))")
WIDTH, BATCH, LENGTH, STEPS = 128, 32, 20, 10

SIZES = (
    *((8, 5), (16, 5), (16, 10), (32, 20), (64, 5), (64, 10), (128, 5), (256, 20), (512, 20)),
    *((64, 256), (128, 256), (64, 1024)),
)
"""Widths and lengths; at the smallest, function calls take much of a step, and at the largest products do."""


class Comparison(NamedTuple):
    """A comparison of a recipe with another model: its name and factory, our extra settings, and the size."""

    recipe: str
    beside: str
    make_model: Callable[[], nn.Module]
    model: Mapping[str, float] = {}
    width: int = WIDTH
    length: int = LENGTH

    @property
    def what(self) -> str:
        """Return what is measured, in Markdown."""
        is_usual = (self.width, self.length) == (WIDTH, LENGTH)
        size = "" if is_usual else f", width {self.width}, length {self.length}"
        return f"a step of `{self.recipe}`{size}"


def settings(recipe: str, model: Mapping[str, float], width: int, length: int) -> TrialSettings:
    """Return the paper's settings with one sequence length."""
    return TrialSettings.model_validate(
        {
            "model": {"recipe": recipe, "d_model": width, **model},
            "task": {"name": "reverse"},
            "train": {
                "optimizer": {"name": "adam", "lr": 1e-3},
                "batch_size": BATCH,
                "epochs": 10**6,
                "steps_per_epoch": 10**6,
                "curriculum": {"start": length},
            },
        }
    )


def make(
    recipe: str,
    device: torch.device = CPU,
    begin: Callable[..., Training] = Training.begin,
    *,
    model: Mapping[str, float] = {},
    width: int = WIDTH,
    length: int = LENGTH,
) -> Training:
    """Return a training with these settings and an endless epoch."""
    return begin(settings(recipe, model, width, length), device, Path("data"))


def plain_loop(
    model: nn.Module, device: torch.device = CPU, *, length: int = LENGTH
) -> Callable[[int], None]:
    """Return a function that takes some training steps in a plain training loop."""
    model.to(device).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    data, generator = get_task("reverse"), torch.Generator().manual_seed(0)

    def take_steps(count: int) -> None:
        for _ in range(count):
            inputs, targets = (each.to(device) for each in data.batch(BATCH, length, generator)[:2])
            loss = functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return take_steps


class PlainAttention(nn.Module):
    """Self-attention written by hand: one map to queries, keys and values, and torch's fused kernel."""

    def __init__(self, width: int, heads: int, head_width: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * heads * head_width, bias=False)
        self.output = nn.Linear(heads * head_width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, length, width) to the same shape."""
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v)
        return self.output(y.transpose(1, 2).reshape(batch, length, -1))


class PlainConvolution(nn.Module):
    """A convolution along the sequence with torch's `Conv1d`, followed by ReLU."""

    def __init__(self, width: int, k: int, *, causal: bool = False) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(width, width, k)
        self.padding = (k - 1, 0) if causal else ((k - 1) // 2, k // 2)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, length, width) to the same shape."""
        return self.convolution(functional.pad(x.transpose(1, 2), self.padding)).relu().transpose(1, 2)


class HandWrittenModel(nn.Module):
    """A hand-written equivalent of `layers * (mixer >> ff(4 * width))` with torch's layers."""

    def __init__(self, make_mixer: Callable[[], nn.Module], layers: int, width: int) -> None:
        super().__init__()
        self.embedding, self.width, inner = nn.Embedding(100, width), width, 4 * width
        self.mixers = nn.ModuleList(make_mixer() for _ in range(layers))
        self.channels = nn.ModuleList(
            nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Dropout(0.1), nn.Linear(inner, width))
            for _ in range(layers)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * layers + 1))
        self.output, self.dropout = nn.Linear(width, 100), nn.Dropout(0.1)
        steps = torch.arange(1024)[:, None] / 1e4 ** (torch.arange(width // 2) / (width // 2 - 1))
        self.register_buffer("timing", torch.cat([steps.sin(), steps.cos()], 1))

    def forward(self, tokens: Tensor) -> Tensor:
        """Map (batch, length) to (batch, length, vocab)."""
        timing = self.get_buffer("timing")[: tokens.shape[1]]
        x = self.embedding(tokens) * self.width**0.5 + timing
        for layer, (mixer, channel) in enumerate(zip(self.mixers, self.channels, strict=True)):
            x = x + timing
            x = x + self.dropout(mixer(self.norms[2 * layer](x)))
            x = x + self.dropout(channel(self.norms[2 * layer + 1](x)))
        return self.output(self.norms[-1](x))


def median_step_ms(
    runners: dict[str, Callable[[int], None]], seconds: float, device: torch.device = CPU
) -> dict[str, float]:
    """Return the median milliseconds of a step of each runner, in turns, so that load affects all equally.

    A turn has at most `STEPS` steps, and fewer if they are slow, so that there are at least ten turns.
    """
    times: dict[str, list[float]] = {name: [] for name in runners}
    now = make_clock(device)
    for run in runners.values():
        run(1)
    started = time.perf_counter()
    for run in runners.values():
        run(1)
    steps = max(1, min(STEPS, int(seconds / 10 / (time.perf_counter() - started))))
    turns, end = 0, time.perf_counter() + seconds
    while turns < 10 or time.perf_counter() < end:
        turns += 1
        for name, run in runners.items():
            started = now()
            run(steps)
            times[name].append(1e3 * (now() - started) / steps)
    return {name: statistics.median(each) for name, each in times.items()}


def model_of(recipe: str) -> nn.Module:
    """Return the model of a recipe, as the engine trains it."""
    return build(recipe, d_model=WIDTH, vocab=100, generator=torch.Generator().manual_seed(0))


def released_model(mixer: str) -> nn.Module:
    """Return the released program's model, equivalent to ours."""
    ours = make(released_active_memory.RECIPES[mixer], model=released_active_memory.MODEL).model.eval()
    theirs = ReleasedTransformer.of(ours, mixer).eval()
    tokens = torch.arange(2 * LENGTH).view(2, LENGTH)
    with torch.no_grad():
        torch.testing.assert_close(theirs(tokens), ours(tokens), rtol=1e-3, atol=1e-4)
    return theirs


def transformer_of_others() -> nn.Module:
    """Return `4 * (sa >> ff(512))` built with x-transformers."""
    from x_transformers import (  # noqa: PLC0415  # pyright: ignore[reportMissingImports] -- make bench installs it
        Encoder,
        TransformerWrapper,
    )

    layers = Encoder(dim=WIDTH, depth=4, heads=8, attn_dim_head=64, ff_mult=4, ff_dropout=0.1)
    return TransformerWrapper(num_tokens=100, max_seq_len=200, attn_layers=layers)


def comparisons() -> Iterator[Comparison]:
    """Yield comparisons with models that need only torch."""
    for recipe in RECIPES:
        yield Comparison(recipe, "a plain PyTorch loop over the same model", partial(model_of, recipe))
    by_hand = "torch's own layers, written by hand"
    convolution = partial(PlainConvolution, WIDTH, 20)
    yield Comparison(RECIPES[1], by_hand, partial(HandWrittenModel, convolution, 4, WIDTH))
    for width, length in SIZES:
        heads = max(1, width // 16)
        for mixer, make_mixer in (
            (f"sa(heads={heads}, head_width=16)", partial(PlainAttention, width, heads, 16)),
            ("conv(k=5)", partial(PlainConvolution, width, 5)),
        ):
            make_model = partial(HandWrittenModel, make_mixer, 2, width)
            recipe = f"2 * ({mixer} >> ff({4 * width}))"
            yield Comparison(recipe, by_hand, make_model, width=width, length=length)
    for mixer, recipe in released_active_memory.RECIPES.items():
        yield Comparison(
            recipe,
            "the model of the released program",
            partial(released_model, mixer),
            released_active_memory.MODEL,
        )


def beside_packages() -> Iterator[Comparison]:
    """Yield comparisons with models of other packages; a factory raises if its package is not installed."""
    yield Comparison(RECIPES[0], "x-transformers, in a plain loop", transformer_of_others)


def compare(what: Comparison, seconds: float, device: torch.device = CPU) -> tuple[float, float]:
    """Return the milliseconds of a step of our engine, and of a plain loop with the other model."""
    theirs = plain_loop(what.make_model(), device, length=what.length)
    training = make(what.recipe, device, model=what.model, width=what.width, length=what.length)
    found = median_step_ms({"ours": training.take_steps, "other": theirs}, seconds, device)
    return found["ours"], found["other"]


def main() -> None:
    """Print the results."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    torch.set_num_threads(1)
    print(
        f"a training step, batch {BATCH}, by default length {LENGTH} and width {WIDTH}, one CPU thread "
        "(CPU time, medians)"
    )
    for what in comparisons():
        ours_ms, other_ms = compare(what, seconds)
        print(f"  {what.what:74} {ours_ms:7.2f} ms   {ours_ms / other_ms:.3f} × {what.beside}")


if __name__ == "__main__":
    main()
