"""Time to generate a batch of each task, relative to a training step of a model of the paper's size.

Run: python bench/data.py. The target is a share below 3 %.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

from activemem.engine.tasks.algorithmic import get_task, registered_tasks

BATCH, LENGTH, TARGET = 32, 40, 0.03


def microseconds(run: Callable[[], object], repeats: int) -> float:
    """Return the median duration of one call, after some warm-up calls."""
    for _ in range(3):
        run()
    seconds: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return 1e6 * statistics.median(seconds)


def training_step(tokens: int, vocab: int) -> Callable[[], object]:
    """Return a training step of four plain Transformer layers, width 128, filter 512."""
    layer = nn.TransformerEncoderLayer(128, 8, 512, dropout=0.1, batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    model = nn.Sequential(nn.Embedding(vocab, 128), encoder, nn.LayerNorm(128), nn.Linear(128, vocab))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    inputs = torch.randint(vocab, (BATCH, tokens))

    def run() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs).flatten(0, 1), inputs.flatten()).backward()
        optimizer.step()

    return run


def main() -> None:
    """Print a line for each task: times of generation and of a step, and their ratio."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    print(f"{'task':10} {'length':>6} {'batch, µs':>10} {'step, µs':>10} {'share':>8}")
    worst = 0.0
    for name in registered_tasks():
        made = get_task(name)
        length = LENGTH + 1 if made.spec.odd_lengths_only else LENGTH
        batch_us = microseconds(lambda made=made, length=length: made.batch(BATCH, length, generator), 500)
        step_us = microseconds(training_step(made.spec.sequence_length(length), made.spec.vocab), 15)
        worst = max(worst, batch_us / step_us)
        print(f"{name:10} {length:6} {batch_us:10.1f} {step_us:10.0f} {batch_us / step_us:8.2%}")
    print(f"worst share {worst:.2%}; target below {TARGET:.0%}: {'met' if worst < TARGET else 'MISSED'}")


if __name__ == "__main__":
    main()
