"""Time and memory of a training step with activation checkpointing, relative to a step without it.

python bench/activation_checkpointing.py [ROUNDS]
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import torch
from clock import CPU, make_clock

from activemem.blocks.testing.fixtures import count_saved_bytes
from activemem.engine.trial.training import Training
from activemem.studies.schema.settings import TrialSettings

MIXERS = ("sa(heads=4)", "conv(k=10)", "lstm", "mamba", "delta", "sa(heads=4) + conv(k=10)")
WIDTH, LENGTH, BATCH, LAYERS = 64, 100, 8, 12


def make_training(mixer: str, *, checkpoints: bool) -> Training:
    """Return a training of six layers with dropout."""
    settings = TrialSettings.model_validate(
        {
            "model": {"recipe": f"{LAYERS} * ({mixer} >> ff({4 * WIDTH}))", "d_model": WIDTH, "dropout": 0.1},
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
    return Training.begin(settings, CPU, Path("data"), recomputes=checkpoints)


def kept_bytes(training: Training) -> int:
    """Return the bytes that a forward pass saves for the backward pass."""
    training.model.train()
    training.objective.begin_batch(1)
    return count_saved_bytes(training.model, lambda: training.objective.loss(training.model, 0, 1))


def main() -> None:
    """Print the ratios of CPU time and of saved memory for each mixer."""
    torch.set_num_threads(1)
    rounds, now = int(sys.argv[1]) if len(sys.argv) > 1 else 5, make_clock(CPU)
    for mixer in MIXERS:
        trainings = [make_training(mixer, checkpoints=each) for each in (False, True)]
        kept = [kept_bytes(training) for training in trainings]
        ratios: list[float] = []
        for _ in range(rounds + 1):
            seconds: list[float] = []
            for training in trainings:
                begun = now()
                training.take_steps()
                seconds.append(now() - begun)
            ratios.append(seconds[1] / seconds[0])
        ratio = statistics.median(ratios[1:])  # the first round warms up
        print(
            f"{mixer:<26} time × {ratio:.2f}   kept × {kept[1] / kept[0]:.3f}   of {kept[0] / 2**20:.0f} MiB"
        )


if __name__ == "__main__":
    main()
