"""Simulated races over seeds: how often they drop the best point, and how many trainings they save.

python bench/race.py [SEARCHES | stored]

Points are drawn around 0 with a given multiple of the noise's standard deviation. Seeds add noise to each
point, and an effect that all points share. Points race one after the other, like in a search with one worker.
Noise is equal for all points, or heavy (Student's t with three degrees of freedom), or grows with the loss
from half to one and a half, or is three times as large for the best point. The last columns are the regret of
the winner with and without the race, in standard deviations of the noise.

With "stored" the points are cells of studies with committed results, in random orders, for each task by the
first value of the first table. The noise is then real, and the best point is the one with the best mean.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from activemem.engine.run.search.search import SeedRace
from activemem.storage import Store
from activemem.storage.rows import row_values
from activemem.studies.catalog.metrics import METRICS
from activemem.studies.study import load_study

POINTS, SEEDS, SPREADS = (20, 100), (3, 5), (1.0, 3.0, 10.0)
_FEWEST, _SEEDS = 5, 3  # cells and seeds of a race on stored results
NOISES = ("equal", "heavy", "grows", "best 3 times")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a search: whether its race dropped the best point, its share of trainings, and regrets.

    `regret_of_all` is the regret of the same search without a race.
    """

    wrong: bool
    trainings: float
    regret: float
    regret_of_all: float


def simulate(shape: tuple[int, int], spread: float, noise: str, rng: np.random.Generator) -> Outcome:
    """Simulate one search with this number of points and seeds."""
    points, seeds = shape
    true = spread * rng.standard_normal(points)
    values = true[:, None] + 2 * rng.standard_normal(seeds) + draw_noise(true, seeds, noise, rng)
    whole, trained = run_race(values)
    means, best = values.mean(axis=1), int(true.argmin())
    winner = min(whole, key=means.__getitem__)
    return Outcome(
        wrong=best not in whole,
        trainings=trained / (points * seeds),
        regret=float(true[winner] - true[best]),
        regret_of_all=float(true[means.argmin()] - true[best]),
    )


def run_race(values: NDArray[np.float64]) -> tuple[list[int], int]:
    """Run a race on losses (points, seeds); return the points with every seed and the number of trainings."""
    points, seeds = values.shape
    race, trained, whole = SeedRace(range(seeds)), 0, list[int]()
    for place in range(points):
        losses: dict[int, float] = {}
        while len(losses) < seeds and race.is_promising(losses):
            losses[len(losses)] = float(values[place, len(losses)])
        race.add(losses)
        trained += len(losses)
        whole += [place] if len(losses) == seeds else []
    return whole, trained


def stored_losses() -> Iterator[tuple[str, str, NDArray[np.float64]]]:
    """Yield for each study and task their names, the metric, and the losses of cells with all seeds."""
    folder = Path(__file__).parents[1] / "studies"
    rows = Store(folder / "results").trials().filter(status="done")
    for (name,), of_study in sorted(rows.group_by("study"), key=lambda each: str(each[0])):
        study = load_study(folder / f"{name}.toml")
        metric = study.tables[0].value[0] if study.tables else "loss"
        sign = -1.0 if metric in METRICS and METRICS[metric].higher_is_better else 1.0
        for (task,), of_task in sorted(of_study.group_by("task"), key=lambda each: str(each[0])):
            cells: dict[str, dict[int, float]] = {}
            for row in of_task.iter_rows(named=True):
                levels = {key: level for key, level in json.loads(row["factors"]).items() if key != "seed"}
                cells.setdefault(json.dumps(levels), {})[row["seed"]] = sign * row_values(row)[metric]
            most = max(len(losses) for losses in cells.values())
            whole = [
                [losses[seed] for seed in sorted(losses)] for losses in cells.values() if len(losses) == most
            ]
            values = np.array(whole)
            values = values[np.isfinite(values).all(axis=1)]
            if values.shape[0] >= _FEWEST and most >= _SEEDS:
                yield f"{name}, {task}", metric, values


def replay_stored(orders: int = 500) -> None:
    """Print the results of races on stored losses."""
    print(f"{'study, task':<44}{'metric':<14}{'cells':>6}{'seeds':>6}{'best given up':>15}{'trainings':>11}")
    for name, metric, values in stored_losses():
        rng, wrong, trained = np.random.default_rng(0), 0, 0
        for _ in range(orders):
            drawn = rng.permutation(values)[:, rng.permutation(values.shape[1])]
            whole, count = run_race(drawn)
            means = drawn.mean(axis=1)
            wrong += bool(means[whole].min() > means.min())
            trained += count
        print(f"{name:<44}{metric:<14}{values.shape[0]:>6}{values.shape[1]:>6}", end="")
        print(f"{wrong / orders:>15.1%}{trained / orders / values.size:>11.0%}", flush=True)


def draw_noise(
    true: NDArray[np.float64], seeds: int, kind: str, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return the noise of each seed of each point."""
    if kind == "heavy":
        return rng.standard_t(3, (len(true), seeds)) / np.sqrt(3)
    scale = np.ones(len(true))
    if kind == "grows":
        scale = 0.5 + (true - true.min()) / np.ptp(true)
    elif kind == "best 3 times":
        scale[true.argmin()] = 3.0
    return scale[:, None] * rng.standard_normal((len(true), seeds))


def main() -> None:
    """Print a table of rates."""
    if sys.argv[1:] == ["stored"]:
        replay_stored()
        return
    searches = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    print(f"{searches:,} searches each")
    print(f"{'points':>7}{'seeds':>6}{'spread':>7}  {'noise':<14}", end="")
    print(f"{'best given up':>14}{'trainings':>11}{'regret':>8}{'of all':>8}")
    for points, seeds, spread, noise in product(POINTS, SEEDS, SPREADS, NOISES):
        rng = np.random.default_rng(0)
        found = [simulate((points, seeds), spread, noise, rng) for _ in range(searches)]
        wrong, share = np.mean([each.wrong for each in found]), np.mean([each.trainings for each in found])
        regrets = np.mean([(each.regret, each.regret_of_all) for each in found], axis=0)
        print(f"{points:>7}{seeds:>6}{spread:>7g}  {noise:<14}", end="")
        print(f"{wrong:>14.1%}{share:>11.0%}{regrets[0]:>8.2f}{regrets[1]:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
