"""A small study with all possible outcomes of cells, and its store."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from activemem import Study, load_study
from activemem.storage import Store, TrialRow
from activemem.storage.rows import trial_frame
from activemem.studies import Trial

from ..study_texts import study_text

STUDY = study_text(
    study={
        "name": "everything",
        "title": "Everything that can happen to a cell",
        "paper": "active-memory-transformer",
    },
    factors={
        "mixer": ["sa", "conv(k=20)", "persistent_conv(k=20) + sa", "conv(k=3) + conv(k=5)"],
        "task": ["sort", "reverse", "copy"],
        "seed": [0, 1, 2],
    },
    table=[{"name": "table4", "rows": "mixer", "columns": "task", "value": "max_length"}],
)

# By mixer and task, for each seed: a value, "failed: why", "pruned: why", or None where it has not run.
EVERYTHING: Mapping[tuple[str, str], tuple[float | str | None, ...]] = {
    ("sa", "sort"): (14.0, 15.0, 16.0),
    ("sa", "reverse"): (41.0, 43.5, "failed: disk is full at epoch 8"),
    ("sa", "copy"): (103.96, 104.0, 104.0),
    ("conv(k=20)", "sort"): (20.0, 30.0, 40.0),
    ("conv(k=20)", "reverse"): (19.0, None, None),
    ("conv(k=20)", "copy"): (104.0, 104.04, 104.0),
    ("persistent_conv(k=20) + sa", "sort"): (
        "failed: 90 % of <memory> & more \t _x_ | $y^2 {#1} ~ \\\nTraceback",
    )
    * 3,
    ("persistent_conv(k=20) + sa", "reverse"): ("pruned: behind the others at epoch 1",) * 3,
    ("persistent_conv(k=20) + sa", "copy"): (5.0, "failed: disk is full at epoch 8", None),
    ("conv(k=3) + conv(k=5)", "reverse"): (7.0, 7.0, float("nan")),
}


@pytest.fixture(scope="session")
def everything() -> Study:
    """Return the study."""
    return load_study(STUDY)


@pytest.fixture(scope="session")
def kept(everything: Study, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return the store with all outcomes."""
    store = Store(tmp_path_factory.mktemp("results"))
    for number, trial in enumerate(everything.trials):
        ends = EVERYTHING.get((str(trial.levels["mixer"]), str(trial.levels["task"])), (None,) * 3)
        end = ends[everything.factors["seed"].index(trial.levels["seed"])]
        if end is not None:
            store.write(_row(trial, end, number), [])
    return store


@pytest.fixture(scope="session")
def rows(kept: Store) -> pl.DataFrame:
    """Return the stored rows of the study's trials."""
    return kept.trials()


FORMS = (
    STUDY.partition("[[table]]")[0]
    .replace('"conv(k=20)", "persistent_conv(k=20) + sa", ', '"highway_conv(k=20)", "conv(k=20)", ')
    .replace('["sort", "reverse", "copy"]', '["sort", "addition"]')
    .replace("seed = [0, 1, 2]", "lr = [1e-3, 3e-3]\nseed = [0, 1, 2, 3, 4, 5, 6, 7]")
    .replace("lr = 1e-3", 'lr = "{lr}"')
    .replace('name = "everything"', 'name = "forms"')
)
NOISE = (0.0, 1.5, -0.75, 2.0, -1.25, 0.5, -2.0, 1.0)
LEVELS = {"sa": 30.0, "highway_conv(k=20)": 31.0, "conv(k=20)": 20.5, "conv(k=3) + conv(k=5)": 12.0}


@pytest.fixture(scope="session")
def forms() -> tuple[Study, pl.DataFrame, frozenset[str]]:
    """Return a study with two learning rates and eight seeds, its outcomes, and the begun trials.

    The higher rate is better on sort, and fails for conv(k=20). The last mixer has begun addition.
    """
    study, frames, begun = load_study(FORMS), [], set()
    for number, trial in enumerate(study.trials):
        mixer, task, seed = str(trial.levels["mixer"]), trial.levels["task"], int(trial.levels["seed"])
        high = trial.levels["lr"] == 3e-3
        noise = NOISE[(seed + 3 * list(LEVELS).index(mixer)) % 8]
        end: float | str = LEVELS[mixer] + noise + (4 if high and task == "sort" else 0)
        if high and mixer == "conv(k=20)":
            end = "failed: disk is full at epoch 1"
        if task == "addition" and mixer == "conv(k=3) + conv(k=5)":
            begun.update([trial.id] if seed < 2 else [])
            continue
        frames.append(trial_frame(_row(trial, end, number)))
    return study, pl.concat(frames).sort("trial"), frozenset(begun)


def _row(trial: Trial, end: float | str, number: int) -> TrialRow:
    return made_row(trial, end if isinstance(end, str) else {"max_length": end, "loss": 1 / end}, number)


def made_row(trial: Trial, end: Mapping[str, float] | str, number: int) -> TrialRow:
    """Return the row of a trial with these final metrics, or with a failure "failed: REASON"."""
    values = () if isinstance(end, str) else tuple(end.items())
    started = datetime(2026, 11, 28, 9, tzinfo=UTC) + timedelta(minutes=number)
    status, _, reason = end.partition(": ") if isinstance(end, str) else ("done", "", "")
    return TrialRow(
        trial=trial.id,
        attempt=1,
        study=trial.study,
        recipe=trial.settings.model.recipe,
        recipe_id="00000000",
        task=trial.settings.task.name,
        seed=trial.settings.seed,
        status=status,
        reason=reason or None,
        factors="{}",
        settings="{}",
        metrics=values,
        parameters=1,
        flops=1.0,
        epochs=2,
        steps=4,
        seconds=1.5,
        peak_mib=1.0,
        version="0.1.0",
        commit="a1b2c3d4e5f6",
        device="H200 & 2 others",
        host="here",
        started=started,
        finished=started + timedelta(seconds=2),
    )
