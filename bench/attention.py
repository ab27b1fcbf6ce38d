"""Benchmark of `all_attn` against its equations, its released program, and `sa >> ff`.

A layer reads a piece of a stream after a full span of inputs. The transcription gathers the keys and values
of every query; `sa(pos=relative) >> ff` has as many parameters as `all_attn`. The script prints times, ratios
and the peak memory of a step, for the released program also with different spans and with dropped weights.

Run: python bench/attention.py [SECONDS a measurement]
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from clock import make_clock
from released_attention import ReleasedAttention
from torch import Tensor
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

from activemem.blocks import Block, Context, build_block
from activemem.blocks.core.initialisation import initialise
from activemem.blocks.layers.all_attention import AllAttention
from activemem.blocks.testing.fixtures import parse_block
from activemem.grammar import configure

HEADS, HEAD_WIDTH, WIDTH, VECTORS, SPAN = 8, 64, 512, 1024, 1024
FILTER = VECTORS - 1  # then ff has 2 N width parameters up to a thousand, like N vectors


@dataclass(frozen=True, slots=True)
class Size:
    """The number of streams, the number of new positions per stream, and the device."""

    batch: int
    length: int
    device: str

    def rows(self, length: int) -> Tensor:
        """Return inputs (batch, length, width)."""
        return torch.randn(self.batch, length, WIDTH, device=self.device)


def make_block(
    text: str, device: str, *, width: int = WIDTH, dropout: float = 0.0, causal: bool = True
) -> Block:
    """Return a block with random weights; `dropout` acts on attention weights."""
    config = configure(d_model=width, causal=causal, dropout=0.0, attention_dropout=dropout)
    block = build_block(parse_block(text), Context(config=config))
    initialise(block, torch.Generator().manual_seed(0))
    return block.to(device).train()


def all_attn_by_equations(block: AllAttention, x: Tensor, past: Tensor) -> Tensor:
    """Compute the layer by its equations on gathered vectors: (batch, heads, length, span, head_width)."""
    batch, length, _ = x.shape
    positions, persistent = block.window.positions, block.persistent
    assert positions is not None and persistent is not None
    seen = torch.cat([past, x], 1)
    q = block.query(x).view(batch, length, HEADS, HEAD_WIDTH).transpose(1, 2)
    k, v = (
        one.view(batch, -1, HEADS, HEAD_WIDTH).transpose(1, 2) for one in block.key_value(seen).chunk(2, -1)
    )
    span = torch.arange(SPAN, device=x.device)
    places = torch.arange(length, device=x.device)[:, None] + span  # query t sees t … t + span - 1
    keys, values = k[:, :, places], v[:, :, places]  # (batch, heads, length, span, head_width)
    context = torch.einsum("bhtd,bhtsd->bhts", q, keys + positions.weight)
    beside = torch.einsum("bhtd,hnd->bhtn", q, math.sqrt(HEAD_WIDTH) * persistent.keys)
    weights = torch.softmax(torch.cat([context, beside], -1) / math.sqrt(HEAD_WIDTH), -1)
    y = torch.einsum("bhts,bhtsd->bhtd", weights[..., :SPAN], values)
    y = y + torch.einsum("bhtn,hnd->bhtd", weights[..., SPAN:], math.sqrt(VECTORS) * persistent.vectors)
    return block.output(y.transpose(1, 2).flatten(2))


def steps(size: Size) -> dict[str, Callable[[], Tensor]]:
    """Return a function that computes the outputs of each layer; all layers get the same inputs."""
    heads = f"heads={HEADS}, head_width={HEAD_WIDTH}, span={SPAN}"
    ours = make_block(f"all_attn(N={VECTORS}, {heads})", size.device)
    attention = make_block(f"sa({heads}, pos=relative)", size.device)
    layer = make_block(f"ff({FILTER})", size.device)
    assert isinstance(ours, AllAttention)
    past, x = size.rows(SPAN), size.rows(size.length).requires_grad_()

    def both() -> Tensor:
        y = x + attention.forward_with_past(x, past)
        return y + layer(y)

    return {
        "all_attn": lambda: x + ours.forward_with_past(x, past),
        "transcription": lambda: x + all_attn_by_equations(ours, x, past),
        "sa >> ff": both,
    }


def beside_released(
    size: Size, *, heads: int, adaptive: bool = False, dropout: float = 0.0
) -> dict[str, Callable[[], Tensor]]:
    """Return a step of our layer and one of the released layer, which have equal weights.

    With `adaptive`, the spans of the heads range from 5 % to 50 % of SPAN.
    """
    width, more = heads * HEAD_WIDTH, ", adaptive=true" if adaptive else ""
    text = f"all_attn(N={VECTORS}, heads={heads}, head_width={HEAD_WIDTH}, span={SPAN}{more})"
    ours = make_block(text, size.device, width=width, dropout=dropout)
    assert isinstance(ours, AllAttention)
    spans = ours.window.spans
    if spans is not None:
        with torch.no_grad():
            spans.z.copy_(torch.linspace(0.05, 0.45, heads))
        ours.after_optimiser_step()
    theirs = ReleasedAttention.of(ours, dropout).to(size.device)
    past, x = (torch.randn(size.batch, length, width, device=size.device) for length in (SPAN, size.length))
    x.requires_grad_()
    layers = {
        "all_attn": lambda: x + ours.forward_with_past(x, past),
        "released": lambda: x + theirs(x, past),
    }
    return layers if adaptive or dropout else {**layers, "multiplied": products_alone(size, heads)}


def products_alone(size: Size, heads: int) -> Callable[[], Tensor]:
    """Return a step that computes only the matrix products of a layer in which all spans are full."""
    batch, length, width = size.batch, size.length, heads * HEAD_WIDTH
    past, x = (torch.randn(batch, count, width, device=size.device) for count in (SPAN, length))

    def weights(*shape: int) -> Tensor:
        return torch.randn(*shape, device=size.device).mul_(0.05).requires_grad_()

    x.requires_grad_()
    query, key_value, output = (weights(count * width, width) for count in (1, 2, 1))
    keys, vectors = (weights(heads, VECTORS, HEAD_WIDTH) for _ in range(2))
    positions = weights(SPAN, HEAD_WIDTH)

    def by_sequence(rows: Tensor) -> Tensor:
        """Reshape (batch, positions, width) to (batch · heads, positions, head_width)."""
        return rows.unflatten(2, (heads, -1)).transpose(1, 2).flatten(0, 1)

    def run() -> Tensor:
        q, new = by_sequence(functional.linear(x, query)), functional.linear(x, key_value)
        k, v = map(by_sequence, functional.linear(past, key_value).chunk(2, -1))
        beside = q.unflatten(0, (batch, heads)).transpose(0, 1).flatten(1, 2)  # of a head those of all
        y = (torch.bmm(beside, keys.mT) @ vectors).unflatten(1, (batch, length)).transpose(0, 1)
        y = torch.bmm(torch.bmm(q, k.mT), v) + y.flatten(0, 1)
        y = functional.linear(y.unflatten(0, (batch, heads)).transpose(1, 2).flatten(2), output)
        return y + 0.0 * (new.sum() + (q.flatten(0, 1) @ positions.T).sum())

    return run


def median_ms(
    runners: dict[str, Callable[[], Tensor]], seconds: float, device: torch.device
) -> dict[str, float]:
    """Return the median milliseconds of each layer's forward and backward pass; the layers run in turns.

    The times are CPU times on a CPU. The warm-up is not part of the seconds.
    """
    now = make_clock(device)
    times: dict[str, list[float]] = {name: [] for name in runners}
    for run in runners.values():
        run().square().mean().backward()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or not all(times.values()):
        for name, run in runners.items():
            started = now()
            run().square().mean().backward()
            times[name].append(1e3 * (now() - started))
    return {name: statistics.median(each) for name, each in times.items()}


def peak_mib(step: Callable[[], Tensor], size: Size) -> float:
    """Return the peak memory of a step with gradients, excluding weights and inputs."""
    if size.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step().square().mean().backward()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        step().square().mean().backward()
    assert watched.profiler is not None, "nothing was watched"
    results: Any = watched.profiler.kineto_results
    events = results.events()
    changes = sorted((each.start_ns(), each.nbytes()) for each in events if each.name() == "[memory]")
    return max(accumulate(change for _, change in changes)) / 2**20


def show(title: str, runners: dict[str, Callable[[], Tensor]], size: Size, seconds: float) -> None:
    """Print a line for each layer."""
    found = median_ms(runners, seconds, torch.device(size.device))
    print(f"{size.device}, batch {size.batch}, block {size.length}, span {SPAN}, N {VECTORS}, {title}")
    for name, run in runners.items():
        ratio = found["all_attn"] / found[name]
        print(f"  {name:14} {found[name]:8.1f} ms  {ratio:5.2f}   {peak_mib(run, size):7.0f} MiB", flush=True)


def assert_same(runners: dict[str, Callable[[], Tensor]], other: str) -> None:
    """Assert that our layer and another implementation of it give the same numbers."""
    with torch.no_grad():
        torch.testing.assert_close(runners["all_attn"](), runners[other](), rtol=1e-2, atol=1e-2)


def main() -> None:
    """Run all comparisons."""
    torch.set_num_threads(1)
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
        one, many = Size(1 if device == "cpu" else 8, 256, device), Size(8, 256, device)
        runners = steps(one)
        assert_same(runners, "transcription")
        show(f"width {WIDTH}", runners, one, seconds)
        for size, heads in ((one, 8), (many, 4)):
            for adaptive, dropout in ((False, 0.0), (True, 0.0), (False, 0.1)):
                pair = beside_released(size, heads=heads, adaptive=adaptive, dropout=dropout)
                if not dropout:
                    assert_same(pair, "released")
                spans = "learnt spans" if adaptive else "full spans"
                show(f"width {heads * HEAD_WIDTH}, {spans}, dropout {dropout}", pair, size, seconds)


if __name__ == "__main__":
    main()
