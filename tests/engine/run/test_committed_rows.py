"""Committed rows can be trained again with equal bits or, after changes, within the seeds' spread."""

import json
import random
from pathlib import Path

import polars as pl
import pytest

from activemem import load_study
from activemem.engine import run_study
from activemem.storage import Store
from activemem.studies import Trial

STUDIES = Path(__file__).parents[3] / "studies"
SPEED = "tokens_per_s"
"""The metric that depends on how busy the machine is."""

LONGEST = 40.0
"""The seconds of the longest training that is repeated."""


def metrics_of(rows: pl.DataFrame) -> list[dict[str, float]]:
    return [
        {each["name"]: each["value"] for each in row if each["name"] != SPEED}
        for row in rows["metrics"].to_list()
    ]


def short_trials() -> list[tuple[str, Trial]]:
    """Return the committed trials of at most LONGEST seconds in cells of three seeds or more."""
    rows = Store(STUDIES / "results").trials().filter(status="done")
    found: list[tuple[str, Trial]] = []
    for name in rows.filter(pl.col("seconds") <= LONGEST)["study"].unique().sort():
        study = load_study(path) if (path := STUDIES / f"{name}.toml").exists() else None
        if study is None or study.search:
            continue
        seconds = dict(rows.filter(study=name).select("trial", "seconds").iter_rows())
        cells: dict[str, list[Trial]] = {}
        for trial in study.trials:
            cell = json.dumps(
                {key: level for key, level in trial.levels.items() if key != "seed"}, default=str
            )
            cells.setdefault(cell, []).append(trial)
        for trials in cells.values():
            if len(trials) >= 3 and all(trial.id in seconds for trial in trials):
                found += [(name, trial) for trial in trials if seconds[trial.id] <= LONGEST]
    return sorted(found, key=lambda each: each[1].id)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_random_committed_trial_gives_the_same_when_it_is_trained_again(seed: int, tmp_path: Path) -> None:
    name, trial = random.Random(seed).choice(short_trials())
    study = load_study(STUDIES / f"{name}.toml")
    run_study(study, tmp_path, local=True, trial_ids=[trial.id])
    committed = Store(STUDIES / "results").trials()
    (anew,) = metrics_of(Store(tmp_path).trials())
    (before,) = metrics_of(committed.filter(trial=trial.id))
    if anew == before:
        return
    levels = {key: level for key, level in trial.levels.items() if key != "seed"}
    cell = [each.id for each in study.trials if levels.items() <= dict(each.levels).items()]
    seeds = metrics_of(committed.filter(pl.col("trial").is_in(cell)))
    assert before.keys() <= anew.keys()  # a metric may have been added since
    for metric in before:
        value = anew[metric]
        values = [each[metric] for each in seeds if metric in each]
        spread = max(values) - min(values)
        assert min(values) - spread <= value <= max(values) + spread, (name, dict(trial.levels), metric)
