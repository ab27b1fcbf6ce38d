"""Benchmark of a training step against plain PyTorch loops: same model, hand-written, and released.

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
from activemem.engine.tasks import get_task
from activemem.engine.trial.training import Training
from activemem.studies.schema.settings import TrialSettings

RECIPES = ("4 * (sa >> ff(512))", "4 * (conv(k=20) >> ff(512))", "4 * (sa + highway_conv(k=20) >> ff(512))")
WIDTH, BATCH, LENGTH, STEPS = 128, 32, 20, 5


class Comparison(NamedTuple):
    """A comparison: a recipe, the name and factory of the other model, and our extra settings."""

    recipe: str
    beside: str
    make_model: Callable[[], nn.Module]
    model: Mapping[str, float] = {}


def settings(recipe: str, model: Mapping[str, float]) -> TrialSettings:
    """Return the paper's settings with one sequence length."""
    return TrialSettings.model_validate(
        {
            "model": {"recipe": recipe, "d_model": WIDTH, **model},
            "task": {"name": "reverse"},
            "train": {
                "optimizer": {"name": "adam", "lr": 1e-3},
                "batch_size": BATCH,
                "epochs": 10**6,
                "steps_per_epoch": 10**6,
                "curriculum": {"start": LENGTH},
            },
        }
    )


def make(
    recipe: str,
    device: torch.device = CPU,
    begin: Callable[..., Training] = Training,
    *,
    model: Mapping[str, float] = {},
) -> Training:
    """Return a training with these settings and an endless epoch."""
    return begin(settings(recipe, model), device, Path("data"))


def engine_loop(training: Training) -> Callable[[], None]:
    """Return a function for steps of the engine's own loop, like `Training.advance`."""

    def steps() -> None:
        for _ in range(STEPS):
            training.take_steps()

    return steps


def plain_loop(model: nn.Module, device: torch.device = CPU) -> Callable[[], None]:
    """Return a function for steps of a plain training loop."""
    model.to(device).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    data, generator = get_task("reverse"), torch.Generator().manual_seed(0)

    def steps() -> None:
        for _ in range(STEPS):
            inputs, targets = (each.to(device) for each in data.batch(BATCH, LENGTH, generator))
            loss = functional.cross_entropy(model(inputs).transpose(1, 2), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return steps


class HandWrittenModel(nn.Module):
    """A hand-written equivalent of `4 * (conv(k=20) >> ff(512))` with torch's layers."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(100, WIDTH)
        self.mixers = nn.ModuleList(nn.Conv1d(WIDTH, WIDTH, 20) for _ in range(4))
        self.channels = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 512), nn.ReLU(), nn.Dropout(0.1), nn.Linear(512, WIDTH))
            for _ in range(4)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(9))
        self.output, self.dropout = nn.Linear(WIDTH, 100), nn.Dropout(0.1)
        steps = torch.arange(200)[:, None] / 1e4 ** (torch.arange(WIDTH // 2) / (WIDTH // 2 - 1))
        self.register_buffer("timing", torch.cat([steps.sin(), steps.cos()], 1))

    def forward(self, tokens: Tensor) -> Tensor:
        """Map (batch, length) to (batch, length, vocab)."""
        timing = self.get_buffer("timing")[: tokens.shape[1]]
        x = self.embedding(tokens) * WIDTH**0.5 + timing
        for layer, (mixer, channel) in enumerate(zip(self.mixers, self.channels, strict=True)):
            x = x + timing
            padded = functional.pad(self.norms[2 * layer](x).transpose(1, 2), (9, 10))
            x = x + self.dropout(mixer(padded).relu().transpose(1, 2))
            x = x + self.dropout(channel(self.norms[2 * layer + 1](x)))
        return self.output(self.norms[8](x))


def median_step_ms(
    runners: dict[str, Callable[[], None]], seconds: float, device: torch.device = CPU
) -> dict[str, float]:
    """Return the median milliseconds of a step of each runner, alternating so that load affects all alike."""
    times: dict[str, list[float]] = {name: [] for name in runners}
    now = make_clock(device)
    for run in runners.values():
        run()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, run in runners.items():
            started = now()
            run()
            times[name].append(1e3 * (now() - started) / STEPS)
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
    yield Comparison(RECIPES[1], "torch's own layers, written by hand", HandWrittenModel)
    for mixer, recipe in released_active_memory.RECIPES.items():
        yield Comparison(
            recipe,
            "the model of the released program",
            partial(released_model, mixer),
            released_active_memory.MODEL,
        )


def beside_packages() -> Iterator[Comparison]:
    """Yield comparisons with models of other packages, which raise if not installed."""
    yield Comparison(RECIPES[0], "x-transformers, in a plain loop", transformer_of_others)


def compare(what: Comparison, seconds: float, device: torch.device = CPU) -> tuple[float, float]:
    """Return the milliseconds of our step, and of a plain loop's step with the other model."""
    theirs = plain_loop(what.make_model(), device)
    ours = engine_loop(make(what.recipe, device, model=what.model))
    found = median_step_ms({"ours": ours, "other": theirs}, seconds, device)
    return found["ours"], found["other"]


def main() -> None:
    """Print the results."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    torch.set_num_threads(1)
    print(
        f"a training step, batch {BATCH}, length {LENGTH}, width {WIDTH}, one CPU thread (CPU time, medians)"
    )
    for what in comparisons():
        ours_ms, other_ms = compare(what, seconds)
        print(f"  {what.recipe:44} {ours_ms:7.2f} ms   {ours_ms / other_ms:.3f} × {what.beside}")


if __name__ == "__main__":
    main()
