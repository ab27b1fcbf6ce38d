"""What a population finds beside a random search with as many epochs: the loss of the best on fresh seeds.

    python bench/population.py [SEARCHES]

Both choose the rate and the decay of AdamW for a small model that sorts. The random search has eight points
that keep their values, the population eight members in eight generations. The best of each is trained again
with fresh seeds, its course with it. A search takes a quarter of a minute on one core.
"""

from __future__ import annotations

import sys
import tempfile
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev

from activemem.engine.run.driver import run_study
from activemem.reporting.results import StudyResults
from activemem.storage import Store
from activemem.studies.study import load_study

STUDY = """
[study]
name = "rates"
title = "A rate for sorting"
baseline = { lr = 1e-3, decay = 0.0 }
baseline_seeds = 2
[model]
recipe = "conv(k=5) >> ff(16)"
d_model = 16
dropout = 0.0
[task]
name = "sort"
[train]
optimizer = { name = "adamw", lr = "{lr}", weight_decay = "{decay}" }
batch_size = 8
epochs = 8
steps_per_epoch = 15
lengths = [8, 8]
[search]
trials = 9
metric = "loss"
SEARCH
[search.space]
lr = "real(1e-4, 1e-1, log=true)"
decay = "choice(0.0, 0.01, 0.1)"
"""

KINDS = {"random": 'sampler = "random"', "population": 'scheduler = "population"\ninterval = 1'}

FRESH_SEEDS = 3


def measure(kind: str, seed: int, folder: Path) -> tuple[float, float]:
    """The loss of the best point of a search, and that of its values with fresh seeds."""
    store = Store(folder / f"{kind}-{seed}")
    study = load_study(STUDY.replace("SEARCH", KINDS[kind]), [f"search.seed={seed}"])
    run_study(study, store, local=True)
    found = StudyResults(study, store)
    winners = load_study(found.promote(best=1, seeds=FRESH_SEEDS))
    run_study(winners, store, local=True)
    rows = StudyResults(winners, store).trials.filter(point="best_1")
    return found.best_points[0].mean, fmean(rows["loss"])


def main() -> None:
    """Print both kinds of searches, and their difference, paired by the seed of the search."""
    searches = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    with tempfile.TemporaryDirectory() as folder:
        found = {kind: [measure(kind, seed, Path(folder)) for seed in range(searches)] for kind in KINDS}
    print("| search | loss of the best | on fresh seeds |\n| :-- | --: | --: |")
    for kind, losses in found.items():
        print(
            f"| {kind} | " + " | ".join(words([each[column] for each in losses]) for column in (0, 1)) + " |"
        )
    differences = [
        words([mine[column] - other[column] for mine, other in zip(*reversed(found.values()), strict=True)])
        for column in (0, 1)
    ]
    print(f"| difference | {' | '.join(differences)} |")


def words(values: list[float]) -> str:
    """A mean with half of its 95 % interval."""
    return f"{fmean(values):.3f} ± {1.96 * stdev(values) / sqrt(len(values)):.3f}"


if __name__ == "__main__":
    main()
