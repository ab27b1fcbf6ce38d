"""Cost of feed-forward attention on one CPU thread, computed in chunks or module by module.

Times of a whole step (forward, backward, Adam) and the most memory that a step adds, as ratios of one run.

Run: python bench/pooling.py
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from activemem.blocks import Model, build
from activemem.blocks.core.residual_stack import SideInputs
from activemem.engine.tasks.long_term import LONG_TERM_PROBLEMS, draw_lengths

BATCH = 100
Answers = Callable[[Model, Tensor, Tensor], Tensor]
RECIPE = "activation(act=leaky_relu) >> {} >> dense(act=leaky_relu)"


def build_model(pool: str) -> Model:
    """Return the paper's model."""
    frame = {"columns": 2, "targets": 1, "init": "he", "position": "none", "norm": "none"}
    return build(RECIPE.format(pool), d_model=100, residual=False, dropout=0.0, **frame)


def as_modules(model: Model, inputs: Tensor, lengths: Tensor) -> Tensor:
    """Return the model's outputs, computed module by module."""
    mask = torch.arange(inputs.shape[1]) < lengths[:, None]
    return model.output(model.body(model.embedding(inputs), SideInputs(mask)).squeeze(1))


def step_ms(pool: str, length: int, answers: Answers) -> float:
    """Return the shortest time of a step in ms."""
    model, generator = build_model(pool), torch.Generator().manual_seed(1)
    optimizer = torch.optim.Adam(model.parameters())
    lengths = draw_lengths(length, length + length // 10, BATCH, generator)
    batch = LONG_TERM_PROBLEMS["recall_addition"].batch(lengths, length + length // 10, generator)
    times = []
    for _ in range(max(3, 20_000 // length)):
        begin = time.perf_counter()
        loss = functional.mse_loss(answers(model, batch.inputs, lengths).squeeze(-1), batch.targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
    return 1e3 * min(times)


def peak_mib() -> float:
    """Return the peak memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def measure_in_subprocess(pool: str, length: int, way: str) -> tuple[float, float]:
    """Measure a step in a subprocess: its milliseconds, and the MiB of memory that it adds."""
    command = [sys.executable, __file__, pool, str(length), way]
    ms, mib = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(ms), float(mib)


def main() -> None:
    """Measure every pool and length with both implementations."""
    torch.set_num_threads(1)
    if len(sys.argv) > 1:
        pool, length, way = sys.argv[1], int(sys.argv[2]), sys.argv[3]
        before, answers = peak_mib(), as_modules if way == "modules" else Model.__call__
        print(step_ms(pool, length, answers), peak_mib() - before)
        return
    for pool in ("attention_pool", "mean_pool"):
        for length in (50, 100, 500, 1000, 5000):
            (ms, mib), (plain_ms, plain_mib) = (
                measure_in_subprocess(pool, length, way) for way in ("pieces", "modules")
            )
            ratio = f"{plain_ms / ms:5.2f} times as fast"
            print(f"{pool:14}  T {length:5}  {ms:7.2f} ms against {plain_ms:8.2f}, {ratio};", end="  ")
            print(f"{mib:5.0f} MiB against {plain_mib:5.0f}")


if __name__ == "__main__":
    main()
