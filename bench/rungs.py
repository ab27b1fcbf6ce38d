"""What rungs save, replayed from a table: architectures trained with a part of their steps, and with all.

The table has a sample of those of `search_table.toml`, each trained three times: with 16 and with 48 steps,
and with all 150, as `search_table.parquet` has it. What a search with `fidelity = "data"` would do is done
with its own code: points are drawn, the best of each rung go on, one training at a time. Work is counted in
whole trainings, by steps. Regret is how far the best point with all of its steps is from the best of the
sample, as a share of how far the median is; means over seeds, with 95 % intervals of the normal
distribution.

Run: python bench/rungs.py [SEEDS]
     python bench/rungs.py --make RESULTS, after these two with 16 and with 48 for STEPS:
     activemem study run bench/search_table.toml --local --results RESULTS --set search.sampler=random
         --set search.trials=150 --set train.steps_per_epoch=STEPS --set study.name=rung-STEPS
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import correlation, fmean, median, stdev

import polars as pl

from activemem.engine.run.search.schedulers.rungs import RungBoard
from activemem.storage import Store
from activemem.studies.fidelity import Fidelity
from activemem.studies.study import load_study

TABLE = Path(__file__).with_name("rungs.parquet")
WHOLE = Path(__file__).with_name("search_table.parquet")
STUDY = WHOLE.with_suffix(".toml")
STEPS = (16, 48, 150)
METRIC = "dev_loss"
BUDGETS = (4, 8, 16, 24, 32)
"""What is looked at: regret after so many whole trainings' work."""

WAYS = {
    "whole trainings": None,
    "asha": Fidelity(name="data", rungs=STEPS, reduction=3, brackets=False),
    "hyperband": Fidelity(name="data", rungs=STEPS, reduction=3, brackets=True),
}

Losses = Mapping[str, Sequence[float]]
"""The loss of each point on each rung."""


def search(losses: Losses, fidelity: Fidelity | None, seed: int) -> list[tuple[float, float]]:
    """The work that was done and the best whole loss so far, after each training."""
    order = sorted(losses)
    random.Random(seed).shuffle(order)
    board = None if fidelity is None else RungBoard(fidelity)
    top, work, best, course = len(STEPS) - 1, 0.0, math.inf, list[tuple[float, float]]()
    while work < BUDGETS[-1]:
        if board is not None and (promoted := board.next_promoted()) is not None:
            point, rung = promoted
        elif order:
            point, rung = order.pop(), top if board is None else board.next_first()
        else:
            break
        if board is not None:
            board.begin(point, rung)
            board.end(point, rung, losses[point][rung])
        work += STEPS[rung] / STEPS[top]
        best = min(best, losses[point][rung]) if rung == top else best
        course.append((work, best))
    return course


def read_losses() -> Losses:
    """The points of the table."""
    table = pl.read_parquet(TABLE)
    return {point: losses for point, *losses in table.select("recipe", *map(str, STEPS)).iter_rows()}


def make(results: str) -> None:
    """Write the table of the points that have been trained with each number of steps."""
    whole = dict(pl.read_parquet(WHOLE).select("recipe", METRIC).iter_rows())
    rows = Store(results).trials().filter(status="done")
    found: list[dict[int, float]] = []
    for steps in STEPS[:-1]:
        study = load_study(STUDY, [f"train.steps_per_epoch={steps}", f"study.name=rung-{steps}"])
        own = rows.filter(study=study.name).iter_rows(named=True)
        found.append(
            {
                row["recipe"]: next(each["value"] for each in row["metrics"] if each["name"] == METRIC)
                for row in own
            }
        )
    points = sorted(set(whole).intersection(*found))
    columns = [*found, whole]
    data = {str(steps): [each[point] for point in points] for steps, each in zip(STEPS, columns, strict=True)}
    pl.DataFrame({"recipe": points, **data}).write_parquet(TABLE, compression="zstd")
    print(json.dumps({"points": len(points), "bytes": TABLE.stat().st_size}))


def ranks(values: Sequence[float]) -> list[float]:
    """The place of each value among all."""
    order = {value: float(place) for place, value in enumerate(sorted(values))}
    return [order[value] for value in values]


def main() -> None:
    """Print how well lower rungs rank, and regrets by the work that was done."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    losses = read_losses()
    columns = list(zip(*losses.values(), strict=True))
    whole = columns[-1]
    for steps, column in zip(STEPS[:-1], columns, strict=False):
        rho = correlation(ranks(column), ranks(whole))
        print(f"{steps} of {STEPS[-1]} steps: rank correlation with all {rho:.2f}")
    low, middle = min(whole), median(whole)
    print(f"{len(losses)} architectures, {seeds} seeds")
    print(f"{'regret after work of':<24}" + "".join(f"{budget:>16}" for budget in BUDGETS))
    for name, fidelity in WAYS.items():
        runs = [search(losses, fidelity, seed) for seed in range(seeds)]
        cells = []
        for budget in BUDGETS:
            best = [min((loss for work, loss in run if work <= budget), default=math.inf) for run in runs]
            found = [(each - low) / (middle - low) for each in best]
            cells.append("–" if math.inf in found else interval(found))
        print(f"{name:<24}" + "".join(f"{cell:>16}" for cell in cells))


def interval(values: Sequence[float]) -> str:
    """The mean of values with its 95 % interval."""
    return f"{fmean(values):.3f} ± {1.96 * stdev(values) / math.sqrt(len(values)):.3f}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--make"]:
        make(sys.argv[2])
    else:
        main()
