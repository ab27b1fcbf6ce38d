"""How much longer training steps take one by one than together, for trials of one form; all in one run.

python bench/packs.py [TRIALS [ROUNDS]]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import torch

from activemem.engine.packs.stacked_steps import StackedSteps
from activemem.engine.trial.training import Training
from activemem.studies.schema.settings import TrialSettings

MIXERS = (
    "sa(heads=4)",
    "conv(k=10)",
    "persistent_conv(k=10)",
    "highway_conv(k=10)",
    "cgru(k=10)",
    "sa(heads=4) + conv(k=10)",
    "lstm",
    "gru",
)
WIDTHS, LENGTHS = (16, 64), (10, 20)
CPU = torch.device("cpu")


def make(mixer: str, width: int, length: int, seed: int) -> Training:
    """A training of algorithmic-small's, as wide and as long."""
    return Training(
        TrialSettings.model_validate(
            {
                "model": {
                    "recipe": f"4 * ({mixer} >> ff({2 * width}))",
                    "d_model": width,
                    "norm": "pre",
                    "position": "timing",
                    "dropout": 0.1,
                },
                "task": {"name": "reverse"},
                "train": {
                    "optimizer": {"name": "adam", "lr": 2e-3},
                    "batch_size": 32,
                    "epochs": 1,
                    "steps_per_epoch": 10**6,
                    "curriculum": {"start": length},
                },
                "seed": seed,
            }
        ),
        CPU,
    )


def times_ms(trainings: Sequence[Training], rounds: int) -> tuple[float, float]:
    """The shortest milliseconds of a step of each one by one, and of a step of all together."""
    alone: list[float] = []
    together: list[float] = []
    for _ in range(rounds + 1):
        began = time.thread_time()
        for training in trainings:
            training.take_step()
        alone.append(time.thread_time() - began)
        with StackedSteps(trainings) as stacked:
            stacked.step()
            began = time.thread_time()
            stacked.step()
            together.append(time.thread_time() - began)
    return 1e3 * min(alone[1:]), 1e3 * min(together[1:])


def ratio(trainings: Sequence[Training], rounds: int) -> float:
    """How much longer a step of each takes one by one than together."""
    alone, together = times_ms(trainings, rounds)
    return alone / together


def main(trials: int = 8, rounds: int = 5) -> None:
    """Print a line for each mixer."""
    torch.set_num_threads(1)
    shapes = [(width, length) for width in WIDTHS for length in LENGTHS]
    print(
        f"{trials} trials".ljust(26) + "".join(f"d {width}, L {length}".rjust(12) for width, length in shapes)
    )
    for mixer in MIXERS:
        ratios = [
            ratio([make(mixer, width, length, seed) for seed in range(trials)], rounds)
            for width, length in shapes
        ]
        print(mixer.ljust(26) + "".join(f"{each:.2f}".rjust(12) for each in ratios), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
