"""Benchmark of `lstm` and `gru` on padded sources against torch's layers on packed sequences.

Forward and backward pass of an encoder, in turns, with the states after the last word of each source.

Run: python bench/recurrent.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from activemem.blocks.testing.fixtures import make_block, make_generator, parse_block, prefix_mask
from activemem.engine.core.process import prepare_cpu

SHAPES = (  # rows, the shortest and the longest source, width
    (32, 6, 8, 100),
    (32, 10, 15, 100),
    (32, 40, 61, 64),
    (32, 20, 30, 256),
)
TURNS, CALLS = 5, 8


def time_in_turns(*calls: Callable[[], None]) -> list[float]:
    """Return the median milliseconds of each call, measured in turns."""
    found: list[list[float]] = [[] for _ in calls]
    for _ in range(TURNS):
        for times, call in zip(found, calls, strict=True):
            call()
            for _ in range(CALLS):
                began = time.thread_time()
                call()
                times.append(time.thread_time() - began)
    return [1e3 * median(times) for times in found]


def ours(text: str, x: Tensor, lengths: Tensor) -> Callable[[], None]:
    """Return a call of the block as an encoder uses it."""
    block = make_block(parse_block(text), causal=True, width=x.shape[2], dtype=torch.float32).train()
    mask = prefix_mask(lengths.tolist(), x.shape[1])

    def call() -> None:
        y, last = block.run(x, block.zero_state(x), mask)
        (y[mask].sum() + sum(part.sum() for part in last.tensors)).backward()

    return call


def theirs(text: str, x: Tensor, lengths: Tensor) -> Callable[[], None]:
    """Return a call of torch's layer on the words without padding."""
    width = x.shape[2]
    layer = {"lstm": nn.LSTM, "gru": nn.GRU}[text](width, width, batch_first=True)

    def call() -> None:
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        y, last = layer(packed)
        parts = last if isinstance(last, tuple) else (last,)
        (pad_packed_sequence(y, batch_first=True)[0].sum() + sum(part.sum() for part in parts)).backward()

    return call


def main() -> None:
    """Run all comparisons."""
    prepare_cpu(1)
    print(f"{'':44}{'ours':>8}{'torch':>8}{'ratio':>7}")
    for text in ("lstm", "gru"):
        for rows, shortest, longest, width in SHAPES:
            lengths = torch.randint(shortest, longest + 1, (rows,), generator=make_generator(1))
            lengths[0] = longest
            x = torch.randn(rows, longest, width, generator=make_generator(2)).requires_grad_()
            found = time_in_turns(ours(text, x, lengths), theirs(text, x, lengths))
            what = f"{text}, width {width}, {rows} of {shortest} to {longest} words"
            print(f"{what:44}{found[0]:8.2f}{found[1]:8.2f}{found[0] / found[1]:7.2f}", flush=True)


if __name__ == "__main__":
    main()
