"""Speedups that implementation choices of blocks give on one CPU thread, forward and backward.

Run: python bench/blocks.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from unittest.mock import patch

import torch
from torch import Tensor
from torch.nn import functional

from activemem.blocks import Context, build_block
from activemem.blocks.core.initialisation import initialise
from activemem.blocks.layers import attention
from activemem.blocks.layers.convolutions import Convolution
from activemem.blocks.testing.fixtures import parse_block
from activemem.engine.core.process import prepare_cpu
from activemem.grammar import configure

BATCH, REPEATS = 32, 15
ALL = 10**9
"""More keys than any input has."""


def median_ms(steps: dict[str, Callable[[], Tensor]], inputs: Sequence[Tensor]) -> dict[str, float]:
    """Return the median CPU milliseconds of a forward and backward pass of each implementation, in turns."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(REPEATS):
        for name, step in steps.items():
            begin = time.process_time()
            y = step()
            y.backward(torch.ones_like(y))
            times[name].append(1e3 * (time.process_time() - begin))
            for tensor in inputs:
                tensor.grad = None
    return {name: statistics.median(each[1:]) for name, each in times.items()}


def convolutions(width: int, k: int, length: int, *, batch: int = BATCH) -> None:
    """Compare the times of five implementations of a convolution.

    Two are this project's, with and without Fourier transforms. Two use torch's conv1d, with the whole kernel
    or with the part of it that the input can reach. The last one multiplies unfolded windows.
    """
    ours, by_positions = (Convolution(width=width, k=k, causal=False, bias_init="zero") for _ in range(2))
    ours.initialise(None)
    by_positions.load_state_dict(ours.state_dict())
    by_positions.use_frequencies = False
    x = torch.randn(batch, length, width, requires_grad=True)
    weight = ours.weight.detach().permute(0, 2, 1).contiguous().requires_grad_()  # (outputs, width, k)
    left, right = min(ours.left, length - 1), min(ours.right, length - 1)
    taps = slice(ours.left - left, ours.left + right + 1)

    def whole() -> Tensor:
        padded = functional.pad(x.transpose(1, 2), (ours.left, ours.right))
        return functional.conv1d(padded, weight, ours.bias).transpose(1, 2)

    def cropped() -> Tensor:
        padded = functional.pad(x.transpose(1, 2), (left, right))
        return functional.conv1d(padded, weight[..., taps], ours.bias).transpose(1, 2)

    def unfolded() -> Tensor:
        windows = functional.pad(x, (0, 0, left, right)).unfold(1, left + right + 1, 1)
        return windows.flatten(2) @ weight[..., taps].flatten(1).T + ours.bias

    ways = {"ours": lambda: ours(x), "positions": lambda: by_positions(x), "whole": whole}
    ways |= {"cropped": cropped, "unfolded": unfolded}
    inputs = [x, weight, *ours.parameters(), *by_positions.parameters()]
    report(f"conv D {width:3} k {k} L {length:4} batch {batch}", median_ms(ways, inputs))


def attentions(text: str, length: int, *, batch: int = BATCH, width: int = 128) -> None:
    """Compare plain products with torch's fused kernel."""
    block = build_block(parse_block(text), Context(config=configure(d_model=width, causal=True, dropout=0.0)))
    initialise(block, torch.Generator().manual_seed(0))
    x = torch.randn(batch, length, width, requires_grad=True)

    def by(**limits: int) -> Callable[[], Tensor]:
        """Return a function that runs the block with other limits of the attention code."""

        def step() -> Tensor:
            with patch.multiple(attention, **limits):
                return block(x)

        return step

    ways = {"products": by(MAX_UNFUSED_LENGTH=ALL), "fused": by(MAX_UNFUSED_LENGTH=0)}
    found = median_ms({"ours": lambda: block(x), **ways}, [x, *block.parameters()])
    report(f"{text} L {length} batch {batch}", found)


def report(label: str, found: dict[str, float]) -> None:
    """Print one line: our time, and that of every other implementation as a multiple of it."""
    base = found.pop("ours")
    ratios = (f"{name} {other / base:5.2f} x" for name, other in found.items())
    print(f"{label:44} ours {base:7.2f} ms   {'   '.join(ratios)}", flush=True)


def main() -> None:
    """Run all comparisons at the sizes of the algorithmic studies."""
    prepare_cpu(1)  # as workers do
    for width in (16, 64, 128):
        for k in (10, 20):
            for length in (5, 10, 20, 40):
                convolutions(width, k, length)
    for batch in (8, BATCH):
        for length in (128, 256, 512, 1024):
            convolutions(128, 20, length, batch=batch)
    for width, heads in ((32, "heads=2, head_width=16"), (128, "heads=8")):
        for length in (5, 10, 20, 40, 64, 128):
            attentions(f"sa({heads})", length, width=width)
    for more in ("pos=alibi", "pos=t5"):
        for length, batch in ((64, 8), (128, 8), (256, 8), (512, 4), (1024, 2)):
            attentions(f"sa({more})", length, batch=batch)


if __name__ == "__main__":
    main()
