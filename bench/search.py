"""How fast each sampler finds the best of a small space, replayed from a table in which all of it is trained.

The table has every architecture of `search_table.toml`, trained once; `search_table.py` makes it. What a
sampler does with it is what a search would: points are asked for dimension by dimension, known ones are
refused, after some refusals in a row one is drawn of those that are left, several are out at a time. Regret
is how far the best point so far is from the best of all, as a share of how far the median is; means over
seeds, with 95 % intervals of the normal distribution. The last columns say after how many points the mean
regret is that of random ones at the end, and how long asking and telling takes.

Run: python bench/search.py [SEEDS [SAMPLER …]]
"""

from __future__ import annotations

import json
import math
import sys
import time
import warnings
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import fmean, median, stdev

import optuna
import polars as pl
from optuna.trial import TrialState

from activemem.engine.run.search.optuna_search import MAX_REJECTED_PROPOSALS, REJECTED_PROPOSALS
from activemem.engine.run.search.samplers.factory import make_sampler
from activemem.engine.run.search.samplers.optuna_space import suggest
from activemem.engine.run.search.unseen_points import UnseenPoints
from activemem.studies.schema.search_settings import SearchSettings
from activemem.studies.study import Study, load_study

STUDY = Path(__file__).with_name("search_table.toml")
METRIC = "dev_loss"

TRIALS = 100
SHOWN = (20, 40, 60, 80, 100)
PARALLEL = 4
SAMPLERS: dict[str, dict[str, object]] = {
    "random": {},
    "tpe": {},
    "tpe, each dimension alone": {"multivariate": False},
    "evolution": {},
    "gp_trees": {},
}

PRIORS: dict[str, dict[str, object]] = {
    "good prior": {
        "depth": "{first} >> {rest}",
        "first": "{mixer}",
        "mixer": "highway_conv(k={k})",
        "k": 9,
        "rest": "{other} >> ff(64)",
        "other": "sa(heads=2, head_width=16) + conv(k={l})",
        "l": 9,
    },
    "bad prior": {
        "depth": "{first} >> {rest}",
        "first": "{mixer} >> ff(64)",
        "mixer": "conv(k={k})",
        "k": 3,
        "rest": "{other}",
        "other": "cgru(k={l})",
        "l": 3,
    },
}
"""The values of the 120th best of all points, and of the 78th worst."""

SAMPLERS |= {
    f"{sampler}, {words}": {"prior": prior}
    for words, prior in PRIORS.items()
    for sampler in ("random", "tpe", "evolution", "gp_trees")
}


@dataclass
class Space:
    """A study whose points are all known: what each is worth, the more the better."""

    study: Study
    worths: dict[str, float]
    seconds: float = field(default=0.0, init=False)

    def search(self, sampler: str, seed: int) -> list[float]:
        """The best worth after each of the points that a sampler has ended, several of them out at a time."""
        name, keys = sampler.partition(",")[0], SAMPLERS[sampler]
        given = {"sampler": name, "trials": TRIALS, "metric": METRIC, "direction": "max", "seed": seed}
        settings = SearchSettings.model_validate({**given, **keys})
        asked = optuna.create_study(direction="maximize", sampler=make_sampler(settings, self.study))
        unseen, known = UnseenPoints(self.study, seed), set[str]()
        refused = 0 if sampler == "random" else REJECTED_PROPOSALS.get(name, MAX_REJECTED_PROPOSALS)
        out: list[tuple[optuna.Trial, float]] = []
        best: list[float] = []
        while len(best) < TRIALS:
            while len(out) < PARALLEL:
                trial, point = self._new_point(asked, known, unseen, refused)
                known.add(point)
                out.append((trial, self.worths[point]))
            trial, worth = out.pop(0)
            begun = time.process_time()
            asked.tell(trial, worth)
            self.seconds += time.process_time() - begun
            best.append(max([worth, *best[-1:]]))
        return best

    def _new_point(
        self, asked: optuna.Study, known: set[str], unseen: UnseenPoints, refused: int
    ) -> tuple[optuna.Trial, str]:
        """A point that is not known; one that is left where so many in a row are, as in a search."""
        begun = time.process_time()
        try:
            for _ in range(refused):
                trial = asked.ask()
                values = self.study.choose(partial(suggest, trial))
                unseen.note(values)
                if (point := key(values)) not in known:
                    return trial, point
                asked.tell(trial, state=TrialState.FAIL)
            values = next(chain(unseen.draw(len(known)), unseen.in_order()))
            unseen.note(values)
            asked.enqueue_trial(dict(values))
            trial = asked.ask()
            return trial, key(self.study.choose(partial(suggest, trial)))
        finally:
            self.seconds += time.process_time() - begun


def key(values: object) -> str:
    """The text by which a point is known."""
    return json.dumps(values)


def read_space() -> Space:
    """The space of the table."""
    table = pl.read_parquet(STUDY.with_suffix(".parquet"))
    return Space(load_study(STUDY), {point: -loss for point, loss in table["values", METRIC].iter_rows()})


def main() -> None:
    """Print a table of regrets."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    space = read_space()
    top, middle = max(space.worths.values()), median(space.worths.values())
    print(f"{len(space.worths):,} architectures, {seeds} seeds, {PARALLEL} points at a time")
    head = "".join(f"{count:>16}" for count in SHOWN)
    print(f"{'regret after':<28}{head}{'as random after':>18}{'ms a point':>12}")
    random_end = None
    for sampler in sys.argv[2:] or SAMPLERS:
        space.seconds = 0.0
        runs = [space.search(sampler, seed) for seed in range(seeds)]
        regrets = [[(top - best) / (top - middle) for best in column] for column in zip(*runs, strict=True)]
        means = [fmean(column) for column in regrets]
        random_end = means[-1] if random_end is None else random_end
        reached = next((str(count) for count, mean in enumerate(means, start=1) if mean <= random_end), "–")
        cells = "".join(f"{interval(regrets[count - 1]):>16}" for count in SHOWN)
        milliseconds = 1000 * space.seconds / (seeds * TRIALS)
        print(f"{sampler:<28}{cells}{reached:>18}{milliseconds:>12.1f}", flush=True)


def interval(values: list[float]) -> str:
    """The mean of values with its 95 % interval."""
    return f"{fmean(values):.3f} ± {1.96 * stdev(values) / math.sqrt(len(values)):.3f}"


if __name__ == "__main__":
    main()
