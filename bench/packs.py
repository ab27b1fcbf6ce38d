"""Speedup by training trials of equal shapes together instead of one by one.

`python bench/packs.py [TRIALS [ROUNDS]]` measures steps. `python bench/packs.py --studies` measures whole
studies with `pack = "auto"`, evaluation and rows included.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Literal

import torch
from clock import CPU, make_clock

from activemem.engine.core.events import Ended
from activemem.engine.core.process import prepare_cpu
from activemem.engine.core.resources import Machine
from activemem.engine.packs.stacked_steps import StackedSteps
from activemem.engine.run.cohorts import GridCohorts
from activemem.engine.run.worker import Worker
from activemem.engine.trial.outcome import Job
from activemem.engine.trial.training import Training
from activemem.storage import Store
from activemem.studies.resolve.trial import Trial
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
WIDTHS = (16, 64)
LENGTHS = (10, 10), (20, 20)
"""The first and last lengths of curricula."""

GROWING = (10, 20)
"""The lengths of a study whose length grows by one in every epoch."""

STUDIES = {("reverse", "sort", "addition", "multiply", "not", "remember"): 3, ("reverse",): 12}
"""The number of seeds for each set of tasks of a study; trials train together while their lengths agree. The
first is `algorithmic-small` of a mixer, with another width, lengths and training time."""

STUDY_EPOCHS, STUDY_STEPS = 4, 50
"""Epochs, and steps per epoch, of a study with one length; its length grows once a model has learnt it."""


def recipe(mixer: str, width: int) -> str:
    """Return the recipe of algorithmic-small; its four heads together have the model width."""
    heads = f"heads=4, head_width={width // 4}"
    return f"4 * ({mixer.replace('heads=4', heads)} >> ff({2 * width}))"


def settings(
    mixer: str, width: int, lengths: tuple[int, int], seed: int, task: str, *, steps: int
) -> TrialSettings:
    """Return the settings of algorithmic-small at this width and length.

    Additions and products need odd lengths.
    """
    first, last = lengths
    if task in ("addition", "multiply"):
        first -= 1 - first % 2
    growing = {"grow_at": 1e-9, "end": last} if lengths == GROWING else {}
    return TrialSettings.model_validate(
        {
            "model": {
                "recipe": recipe(mixer, width),
                "d_model": width,
                "norm": "pre",
                "position": "timing",
                "dropout": 0.1,
            },
            "task": {"name": task},
            "train": {
                "optimizer": {"name": "adam", "lr": 2e-3},
                "batch_size": 32,
                "epochs": last - lengths[0] + 1 if growing else STUDY_EPOCHS,
                "steps_per_epoch": steps,
                "curriculum": {"start": first, **growing},
            },
            "seed": seed,
        }
    )


def make(mixer: str, width: int, length: int, seed: int, device: torch.device = CPU) -> Training:
    """Return a training with an endless epoch."""
    return Training.begin(settings(mixer, width, (length, length), seed, "reverse", steps=10**6), device)


def times_ms(
    trainings: Sequence[Training],
    rounds: int,
    others: dict[str, Callable[[], None]] | None = None,
) -> dict[str, float]:
    """Return the shortest milliseconds of a step for each way: "alone", "together", and each of `others`."""
    now, found = make_clock(trainings[0].device), dict[str, list[float]]()

    def note(name: str, run: Callable[[], object]) -> None:
        began = now()
        run()
        found.setdefault(name, []).append(now() - began)

    for _ in range(rounds + 1):
        note("alone", lambda: [training.take_steps() for training in trainings])
        with StackedSteps(trainings) as stacked:
            stacked.step()
            note("together", stacked.step)
        for name, run in (others or {}).items():
            note(name, run)
    return {name: 1e3 * min(each[1:]) for name, each in found.items()}


def ratio(trainings: Sequence[Training], rounds: int) -> float:
    """Return the time of separate steps divided by that of a joint step."""
    found = times_ms(trainings, rounds)
    return found["alone"] / found["together"]


def studies_ratio(
    tasks: Sequence[str], seeds: int, mixer: str, width: int, lengths: tuple[int, int]
) -> float:
    """Return the time of a study without packs, divided by its time with packs.

    The time includes evaluation, checkpoints and rows, in two rounds.
    """
    cells = [(task, seed) for task in tasks for seed in range(seeds)]
    taken: dict[Literal["off", "auto"], float] = {"off": 0.0, "auto": 0.0}
    with tempfile.TemporaryDirectory() as name:
        for turn in range(2):
            for pack in taken:
                trials = (
                    Trial(
                        study="packs",
                        levels={"task": task, "seed": seed},
                        settings=settings(mixer, width, lengths, seed, task, steps=STUDY_STEPS),
                    )
                    for task, seed in cells
                )
                jobs = [Job(trial=each, attempt=0, run="bench") for each in trials]
                machine, store = Machine(gpus=0, pack=pack), Store(Path(name, pack, str(turn)))
                began = time.process_time()
                assert train(jobs, Worker(store, machine), machine.most_packed) == ["done"] * len(cells)
                taken[pack] += time.process_time() - began
    return taken["off"] / taken["auto"]


def train(jobs: Sequence[Job], worker: Worker, pack: int) -> list[str]:
    """Train the cohorts that a run would give to one worker; return the status of each ended trial."""
    source, ended = GridCohorts(jobs, pack=pack), list[str]()
    while (cohort := source.next_cohort()) is not None:
        name, taken = cohort
        ended += [each.status for each in worker.events(worker.attempts(taken)) if isinstance(each, Ended)]
        source.cohort_ended(name, completed=True)
    return ended


def show(
    title: str, measure: Callable[[str, int, tuple[int, int]], float], spans: Sequence[tuple[int, int]]
) -> None:
    """Print a line for each mixer."""
    shapes = list(product(WIDTHS, spans))
    heads = (f"d {width}, L {'-'.join(map(str, sorted(set(span))))}" for width, span in shapes)
    print(title.ljust(26) + "".join(head.rjust(14) for head in heads))
    for mixer in MIXERS:
        ratios = (f"{measure(mixer, *shape):.2f}".rjust(14) for shape in shapes)
        print(mixer.ljust(26) + "".join(ratios), flush=True)


def main() -> None:
    """Run all comparisons of steps, or of studies."""
    prepare_cpu(1)
    given = [each for each in sys.argv[1:] if each != "--studies"]
    trials, rounds = (*map(int, given), *(8, 5)[len(given) :])[:2]
    if "--studies" in sys.argv:
        for tasks, seeds in STUDIES.items():
            title = f"studies of {len(tasks)} x {seeds} trials"
            show(title, partial(studies_ratio, tasks, seeds), [*LENGTHS, GROWING])
        return

    def of_steps(mixer: str, width: int, lengths: tuple[int, int]) -> float:
        return ratio([make(mixer, width, lengths[0], seed) for seed in range(trials)], rounds)

    show(f"steps of {trials} trials", of_steps, LENGTHS)


if __name__ == "__main__":
    main()
