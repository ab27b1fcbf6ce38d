"""Savings of rungs, replayed from a table of losses of architectures after part or all of their steps.

Run: python bench/rungs.py [SEEDS [WAY …]].

The table has the architectures of `search_table.toml` with kernels of 9, trained with 16, 48 and all 150
steps. A search with `fidelity = "data"` is replayed with its own code: a sampler proposes points, the best of
each rung are promoted, one training at a time, and the sampler learns from the highest rung with enough
points. The scheduler `median` sees the losses of a training after these steps, as if they were those of one
training. Work is the number of steps, in units of a whole training. Regret is the distance of the best fully
trained point from the best of all, relative to the distance of the median. The program prints means over
seeds with normal 95 % intervals.

To make the table, run `python bench/rungs.py --make RESULTS` after these two commands, with 16 and with 48
for STEPS: activemem study run bench/search_table.toml --local --results RESULTS --set search.trials=406 --set
"search.space.k=integer(9, 9)" --set "search.space.l=integer(9, 9)" --set train.steps_per_epoch=STEPS --set
study.name=rung-STEPS
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import correlation, fmean, median, stdev

import optuna
import polars as pl
from optuna.trial import TrialState

from activemem.engine.run.search.optuna_study import OptunaStudy
from activemem.engine.run.search.samplers.search_observations import Values
from activemem.engine.run.search.search import next_promoted
from activemem.engine.run.search.stored_points import PointEnd, SearchPoint
from activemem.storage import Store
from activemem.storage.rows import row_values
from activemem.studies.study import Study, load_study

TABLE = Path(__file__).with_name("rungs.parquet")
WHOLE = Path(__file__).with_name("search_table.parquet")
STUDY = WHOLE.with_suffix(".toml")
SPACE = ("search.space.k=integer(9, 9)", "search.space.l=integer(9, 9)")
STEPS = (16, 48, 150)
METRIC = "dev_loss"
BUDGETS = (4, 8, 16, 24, 32)
"""The budgets, in full trainings, at which regret is shown."""

WAYS: dict[str, tuple[str, ...]] = {
    "random": ("random",),
    "gp_trees": ("gp_trees",),
    "asha": ("random", "asha"),
    "asha, gp_trees": ("gp_trees", "asha"),
    "asha, tpe": ("tpe", "asha"),
    "median, gp_trees": ("gp_trees", "median"),
}
"""The sampler of each method, and its scheduler if it has one."""

Losses = Mapping[str, Sequence[float]]
"""The losses of each point by rung."""


def load(way: Sequence[str], losses: Losses, seed: int) -> Study:
    """Return the search study with this sampler and, if one is given, this scheduler."""
    sampler, *scheduler = way
    changes = [f"search.sampler={sampler}", f"search.seed={seed}", f"search.trials={len(losses)}"]
    if scheduler == ["median"]:
        changes.append("search.scheduler=median")
    elif scheduler:
        keys = f"fidelity = 'data', min_fidelity = {STEPS[0]}, reduction = 3"
        changes.append(f"search.scheduler={{ name = '{scheduler[0]}', {keys} }}")
    study = load_study(STUDY, [*SPACE, *changes])
    assert study.search.rungs.rungs in ((), STEPS), study.search.rungs
    return study


@dataclass
class Replay:
    """A replayed search with one training at a time."""

    study: Study
    losses: Losses

    def __post_init__(self) -> None:
        """Prepare the search."""
        assert self.study.search is not None
        self._asked = OptunaStudy(self.study)
        self._rungs: list[dict[str, float | None]] = [{} for _ in self.study.search.rungs.rungs]
        self._known = set[str]()

    def run(self, work: float) -> list[tuple[float, float]]:
        """Return the work and the best full loss after each training, until the work reaches this budget."""
        done, best, course = 0.0, math.inf, list[tuple[float, float]]()
        while done < work:
            promoted = next_promoted(self.study.search.rungs, self._rungs)
            if promoted is not None:
                (point, rung), trial = promoted, None
            elif len(self._known) == len(self.losses):
                break
            else:
                (point, trial), rung = self._begin(), 0
            step = rung if self._rungs else self._pruned_at(point, trial)
            loss = self.losses[point][step]
            done += STEPS[step] / STEPS[-1]
            best = min(best, loss) if STEPS[step] == STEPS[-1] else best
            course.append((done, best))
            self._end(point, rung, loss, trial, is_pruned=not self._rungs and step < len(STEPS) - 1)
        return course

    def _pruned_at(self, point: str, trial: optuna.Trial | None) -> int:
        """Return the index in STEPS at which the scheduler prunes a training; the last one if it does not."""
        assert trial is not None, "only rungs train a point again"
        for index, steps in enumerate(STEPS[:-1]):
            trial.report(self.losses[point][index], steps)
            if trial.should_prune():
                return index
        return len(STEPS) - 1

    def _begin(self) -> tuple[str, optuna.Trial]:
        """Return a new point and its Optuna trial, chosen with the search's own code."""

        def accept(values: Values) -> SearchPoint | None:
            return None if json.dumps(values) in self._known else SearchPoint(values, ())

        point, trial, _ = self._asked.propose(accept, len(self._known))
        self._known.add(json.dumps(point.values))
        return json.dumps(point.values), trial

    def _end(
        self, point: str, rung: int, loss: float, trial: optuna.Trial | None, *, is_pruned: bool
    ) -> None:
        """Report the loss of a point on a rung."""
        if self._rungs:
            self._rungs[rung][point] = loss
        state = TrialState.PRUNED if is_pruned else TrialState.COMPLETE
        self._asked.tell(SearchPoint(json.loads(point), (), rung), PointEnd(state, 0, (loss,)), trial)


def read_losses() -> Losses:
    """Return a mapping from each point, its values as JSON, to its losses in the table."""
    table = pl.read_parquet(TABLE)
    return {point: losses for point, *losses in table.select("values", *map(str, STEPS)).iter_rows()}


def make(results: str) -> None:
    """Write the table with the loss of each point after each number of steps."""
    whole = {recipe: each for recipe, *each in pl.read_parquet(WHOLE)["recipe", "values", METRIC].iter_rows()}
    rows = Store(results).trials().filter(status="done")
    found: list[dict[str, float]] = []
    for steps in STEPS[:-1]:
        own = rows.filter(study=f"rung-{steps}").iter_rows(named=True)
        found.append({row["recipe"]: row_values(row)[METRIC] for row in own})
    points = sorted(set(whole).intersection(*found))
    data = {str(steps): [each[point] for point in points] for steps, each in zip(STEPS, found, strict=False)}
    last = {str(STEPS[-1]): [whole[point][1] for point in points]}
    table = pl.DataFrame({"values": [whole[point][0] for point in points], **data, **last})
    table.write_parquet(TABLE, compression="zstd")
    print(json.dumps({"points": len(points), "bytes": TABLE.stat().st_size}))


def ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value."""
    order = {value: float(place) for place, value in enumerate(sorted(values))}
    return [order[value] for value in values]


def main() -> None:
    """Print how well each lower rung ranks architectures, and the regret of each way at each budget."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    losses = read_losses()
    columns = list(zip(*losses.values(), strict=True))
    whole = columns[-1]
    for steps, column in zip(STEPS[:-1], columns, strict=False):
        rho = correlation(ranks(column), ranks(whole))
        print(f"{steps} of {STEPS[-1]} steps: rank correlation with all {rho:.2f}")
    low, middle = min(whole), median(whole)
    print(f"{len(losses)} architectures, {seeds} seeds")
    print(f"{'regret after work of':<24}" + "".join(f"{budget:>16}" for budget in BUDGETS))
    for name in sys.argv[2:] or WAYS:
        runs = [Replay(load(WAYS[name], losses, seed), losses).run(BUDGETS[-1]) for seed in range(seeds)]
        cells = []
        for budget in BUDGETS:
            best = [min((loss for work, loss in run if work <= budget), default=math.inf) for run in runs]
            found = [(each - low) / (middle - low) for each in best]
            cells.append("–" if math.inf in found else interval(found))
        print(f"{name:<24}" + "".join(f"{cell:>16}" for cell in cells), flush=True)


def interval(values: Sequence[float]) -> str:
    """Return the mean of values with its 95 % interval."""
    return f"{fmean(values):.3f} ± {1.96 * stdev(values) / math.sqrt(len(values)):.3f}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--make"]:
        make(sys.argv[2])
    else:
        main()
