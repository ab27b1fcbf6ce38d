"""A whole search by Optuna's TPE beside one that is written by hand: CPU milliseconds of a point.

Both draw as many points of a kernel size and a learning rate, train the same small convolutional model on the
same task, evaluate it, and keep every trial on disk. By hand that is `Study.optimize` with SQLite.

python bench/optuna_by_hand.py [POINTS]
"""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import optuna
import step
import torch
from torch.nn import functional

from activemem import load_study, run_study
from activemem.engine.core.process import prepare_cpu
from activemem.engine.tasks.algorithmic import get_task

WIDTH, LENGTH, EPOCHS, STEPS, BATCH, TESTED = 64, 20, 2, 50, 32, 128
POINTS = 10
TURNS = 3

SETTINGS = f"""
[study]
name = "by-hand"
title = "A study by hand"
[model]
recipe = "2 * (conv(k={{k}}) >> ff({4 * WIDTH}))"
d_model = {WIDTH}
norm = "pre"
position = "timing"
dropout = 0.1
[task]
name = "reverse"
dev_examples = {TESTED}
[train]
optimizer = {{ name = "adam", lr = RATE }}
batch_size = {BATCH}
epochs = {EPOCHS}
steps_per_epoch = {STEPS}
curriculum = {{ start = {LENGTH} }}
"""
"""The template of both studies; RATE stands for the learning rate."""

STUDY = f"""\
{SETTINGS.replace("RATE", '"{lr}"')}
[factors]
seed = [0]
[search]
sampler = "tpe"
metric = "accuracy"
trials = POINTS
[search.space]
k = "integer(3, 20)"
lr = "real(5e-4, 1e-2, log=true)"
"""


def engine_search(points: int, seed: int, folder: Path) -> None:
    """Run the study in this process."""
    study = load_study(STUDY.replace("POINTS", str(points)), [f"search.seed={seed}"])
    summary = run_study(study, folder, local=True)
    assert summary.done == points, summary


def search_by_hand(points: int, seed: int, folder: Path) -> None:
    """Run the same search with Optuna and plain training loops."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    folder.mkdir()
    study = optuna.create_study(
        storage=f"sqlite:///{folder}/optuna.db",
        sampler=optuna.samplers.TPESampler(seed=seed),
        direction="maximize",
    )
    study.optimize(train_by_hand, n_trials=points)


def train_by_hand(trial: optuna.Trial) -> float:
    """Train a point with torch's own layers, and return its accuracy after the last epoch."""
    return train(trial.suggest_int("k", 3, 20), trial.suggest_float("lr", 5e-4, 1e-2, log=True))


def train(k: int, rate: float, seed: int = 0) -> float:
    """Train a model of convolutions in a plain loop, and return its accuracy after the last epoch."""
    torch.manual_seed(seed)
    model = step.HandWrittenModel(partial(step.PlainConvolution, WIDTH, k), 2, WIDTH).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, fused=True)
    data, generator = get_task("reverse"), torch.Generator().manual_seed(seed)
    tested, accuracy = data.batch(TESTED, LENGTH, torch.Generator().manual_seed(1)), 0.0
    for _ in range(EPOCHS):
        for _ in range(STEPS):
            inputs, targets, _ = data.batch(BATCH, LENGTH, generator)
            loss = functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = float((model(tested[0]).argmax(-1) == tested[1]).float().mean())
        model.train()
    return accuracy


def measure(points: int = POINTS) -> tuple[float, float]:
    """Return the CPU milliseconds of a point of our search, and of one by hand; medians of turns."""
    times = dict[Callable[..., None], list[float]]()
    with tempfile.TemporaryDirectory() as name:
        for turn in range(TURNS + 1):  # the first warms up
            for search in (engine_search, search_by_hand):
                started = time.process_time()
                search(points if turn else 2, turn, Path(name) / f"{search.__name__}-{turn}")
                if turn:
                    times.setdefault(search, []).append(1e3 * (time.process_time() - started) / points)
    ours, by_hand = (sorted(times[each])[TURNS // 2] for each in (engine_search, search_by_hand))
    return ours, by_hand


def main() -> None:
    """Print the figures."""
    logging.disable(logging.WARNING)
    prepare_cpu(1)
    ours, by_hand = measure(int(sys.argv[1]) if len(sys.argv) > 1 else POINTS)
    print(f"a point of a search: {ours:.0f} ms of CPU, by hand {by_hand:.0f} ms, ratio {ours / by_hand:.2f}")


if __name__ == "__main__":
    main()
