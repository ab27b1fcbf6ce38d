"""How fast each sampler finds the best of a small space, in a table of what every architecture is worth.

The table is synthetic, and stands for no trained model: the value of a tree is a sum over its blocks with
terms for pairs of neighbours, saturating in the depth, plus a little noise by the tree's identity. What a
sampler does with it is what a search would: points are asked for dimension by dimension, known ones are
refused, several are out at a time. Regret is how far the best point so far is below the best of all, as a
share of how far the median is; means over seeds, with 95 % intervals of the normal distribution.

Run: python bench/search.py [SEEDS]
"""

from __future__ import annotations

import hashlib
import math
import sys
import time
import warnings
from functools import partial
from statistics import fmean, median, stdev

import optuna
from optuna.trial import TrialState

from activemem.engine.run.search.optuna_search import MAX_REJECTED_PROPOSALS
from activemem.engine.run.search.optuna_space import suggest
from activemem.engine.run.search.samplers import make_sampler
from activemem.studies.resolve.search_points import enumerate_points
from activemem.studies.schema.search_settings import SearchSettings
from activemem.studies.study import Study, load_study

RECIPE = "{count} * ({mixer} >> ff(64, act={act})) >> {last} >> ff(128)"
STUDY = f"""
[study]
name = "table"
title = "A space whose values are known"
[model]
recipe = "{RECIPE}"
d_model = 16
[task]
name = "sort"
[train]
optimizer = {{ name = "adam", lr = 1e-3 }}
batch_size = 4
epochs = 1
steps_per_epoch = 1
lengths = [1, 8]
[search]
trials = 1
metric = "dev_loss"
direction = "min"
[search.space]
count = "integer(1, 6)"
mixer = "choice(sa(heads=2), conv(k={{kernel}}), sa(heads=2) + conv(k={{kernel}}))"
last = "choice(sa(heads=2), conv(k={{wide}}))"
kernel = "integer(2, 9)"
wide = "integer(3, 15, step=2)"
act = "choice(relu, gelu, tanh)"
"""

TRIALS = 80
SHOWN = (20, 40, 60, 80)
PARALLEL = 4
SAMPLERS: dict[str, dict[str, object]] = {
    "random": {},
    "evolution": {},
    "evolution, a sample of 5": {"sample": 5},
    "evolution, a population of 10": {"population": 10, "sample": 5},
    "tpe": {},
}
Table = dict[str, float]


def worth(values: dict[str, object]) -> float:
    """What a point is worth: smooth in its numbers, with optima that depend on one another."""
    mixer, last = str(values["mixer"]), str(values["last"])
    count = int(str(values["count"]))
    total = 1 - math.exp(-count / 2) - 0.02 * count
    if "kernel" in values:
        kernel = int(str(values["kernel"]))
        total += 0.4 * math.exp(-(((kernel - (3 + count / 2)) / 2) ** 2))
    total += 0.2 if mixer.startswith("sa") else 0.0
    if last.startswith("conv"):
        wide = int(str(values["wide"]))
        total += 0.3 * math.exp(-(((wide - 9) / 4) ** 2)) * (1.5 if mixer.startswith("sa") else 0.5)
    else:
        total += 0.1 if mixer.startswith("conv") else -0.1
    total += {"relu": 0.05, "gelu": 0.1 if count > 2 else 0.0, "tanh": -0.1}[str(values["act"])]
    noise = hashlib.sha256(repr(sorted(values.items())).encode()).digest()
    return total + 0.05 * (noise[0] / 255 - 0.5)


def make_table(study: Study) -> Table:
    """The value of every architecture, by its text: equal recipes are one."""
    table: Table = {}
    for values in enumerate_points(study.choose):
        table.setdefault(study.trial_for(values).settings.model.recipe, worth(dict(values)))
    return table


def search(study: Study, table: Table, recipes: dict[str, str], sampler: str, seed: int) -> list[float]:
    """The best value after each of the points that a sampler has ended, several of them out at a time."""
    name, keys = sampler.partition(",")[0], SAMPLERS[sampler]
    settings = SearchSettings.model_validate(
        {"sampler": name, "trials": TRIALS, "metric": "dev_loss", "direction": "max", "seed": seed, **keys}
    )
    asked = optuna.create_study(direction="maximize", sampler=make_sampler(settings, study))
    known: set[str] = set()
    out: list[tuple[optuna.Trial, float]] = []
    best: list[float] = []
    while len(best) < TRIALS:
        while len(out) < PARALLEL:
            trial, recipe = _new_point(study, recipes, asked, known)
            known.add(recipe)
            out.append((trial, table[recipe]))
        trial, value = out.pop(0)
        asked.tell(trial, value)
        best.append(max(value, *best[-1:], -math.inf))
    return best


def _new_point(
    study: Study, recipes: dict[str, str], asked: optuna.Study, known: set[str]
) -> tuple[optuna.Trial, str]:
    """A point that is not known; the next in order where too many in a row are, as in a search."""
    for _ in range(MAX_REJECTED_PROPOSALS):
        trial = asked.ask()
        recipe = recipes[repr(sorted(study.choose(partial(suggest, trial)).items()))]
        if recipe not in known:
            return trial, recipe
        asked.tell(trial, state=TrialState.FAIL)
    in_order = ((recipes[repr(sorted(each.items()))], each) for each in enumerate_points(study.choose))
    recipe, values = next(pair for pair in in_order if pair[0] not in known)
    asked.enqueue_trial(values)
    trial = asked.ask()
    study.choose(partial(suggest, trial))
    return trial, recipe


def main() -> None:
    """Print a table of regrets."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    study = load_study(STUDY)
    recipes = {
        repr(sorted(values.items())): study.trial_for(values).settings.model.recipe
        for values in enumerate_points(study.choose)
    }
    table = make_table(study)
    top, middle = max(table.values()), median(table.values())
    print(f"{len(table):,} architectures, synthetic values, {seeds} seeds, {PARALLEL} points at a time")
    print(f"{'regret after':<32}" + "".join(f"{count:>16}" for count in SHOWN) + f"{'s a search':>12}")
    for sampler in SAMPLERS:
        begun = time.perf_counter()
        runs = [search(study, table, recipes, sampler, seed) for seed in range(seeds)]
        seconds = (time.perf_counter() - begun) / seeds
        cells = []
        for count in SHOWN:
            regrets = [(top - run[count - 1]) / (top - middle) for run in runs]
            cells.append(f"{fmean(regrets):.3f} ± {1.96 * stdev(regrets) / math.sqrt(seeds):.3f}")
        print(f"{sampler:<32}" + "".join(f"{cell:>16}" for cell in cells) + f"{seconds:>12.2f}", flush=True)


if __name__ == "__main__":
    main()
