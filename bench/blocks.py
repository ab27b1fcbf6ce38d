"""What the blocks' inner choices gain on one CPU thread, forward and backward; prints times and ratios.

Run: python bench/blocks.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from activemem.blocks.core.block import Context
from activemem.blocks.core.dropout import Dropout
from activemem.blocks.core.initialisation import initialise
from activemem.blocks.layers import attention
from activemem.blocks.layers.convolutions import Convolution
from activemem.grammar import ModelConfig

BATCH = 32


def median_ms(step: Callable[[], Tensor], inputs: list[Tensor], repeats: int = 15) -> float:
    """The median wall time of one forward and backward pass."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        y = step()
        y.backward(torch.ones_like(y))
        times.append(time.perf_counter() - begin)
        for tensor in inputs:
            tensor.grad = None
    return 1e3 * sorted(times)[repeats // 2]


def convolutions(width: int, k: int, length: int) -> None:
    """Torch's conv1d with all taps and with those that can touch data, unfold and matmul, and ours."""
    ours = Convolution(width=width, k=k, causal=False, bias_init="zero")
    ours.initialise(None)
    x = torch.randn(BATCH, length, width, requires_grad=True)
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

    inputs = [x, weight, *ours.parameters()]
    report(f"conv D {width:3} k {k} L {length:2}", lambda: ours(x), inputs, whole, cropped, unfolded)


def attentions(width: int, heads: int, head_width: int, length: int) -> None:
    """The whole block, by batched products (ours up to a length of attention.SHORT) and by torch's kernel."""
    context = Context(config=ModelConfig(d_model=width))
    block = attention.SelfAttention(heads=heads, head_width=head_width, temperature=1.0, context=context)
    initialise(block, None)
    x = torch.randn(BATCH, length, width, requires_grad=True)

    def by(short: int) -> Tensor:
        attention.MAX_UNFUSED_LENGTH = short  # pyright: ignore[reportPrivateImportUsage] -- changed for this
        return block(x)

    def fused() -> Tensor:
        return by(0)

    report(f"sa {heads} x {head_width} L {length}", lambda: by(length), [x, *block.parameters()], fused)


def dropouts(width: int, length: int) -> None:
    """Torch's dropout and ours."""
    x = torch.randn(BATCH, length, width, requires_grad=True)
    ours, torchs = Dropout(0.1), nn.Dropout(0.1)

    def theirs() -> Tensor:
        return torchs(x)

    report(f"dropout {width} L {length}", lambda: ours(x), [x], theirs)


def report(
    label: str, ours: Callable[[], Tensor], inputs: list[Tensor], *others: Callable[[], Tensor]
) -> None:
    """One line: ours, and every other way as a multiple of it."""
    base = median_ms(ours, inputs)
    ratios = (f"{other.__name__} {median_ms(other, inputs) / base:5.2f} x" for other in others)
    print(f"{label:24} ours {base:7.2f} ms   {'   '.join(ratios)}", flush=True)


def main() -> None:
    """All comparisons at the sizes of the algorithmic studies."""
    torch.set_num_threads(1)
    for width in (64, 128):
        for k in (10, 20):
            for length in (5, 10, 20, 40):
                convolutions(width, k, length)
    for width, heads, head_width in ((32, 2, 16), (128, 8, 64)):
        for length in (5, 10, 20, 40, 64, 128):
            attentions(width, heads, head_width, length)
    for width in (128, 512):
        dropouts(width, 40)


if __name__ == "__main__":
    main()
