"""Scenes: the disturbed studies, a grid and a search, with trials of a tenth of a second."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from activemem import Study, load_study
from activemem.studies import Trial
from activemem.studies.schema.search import enumerate_points

from ..study_texts import study_text

NAME = "chaos"
_TRAIN = {"optimizer": {"name": "adam", "lr": 0.01}, "batch_size": 8, "steps_per_epoch": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A study, the options and number of its drivers, and the permitted outcomes of its trials.

    `ids` has the ids of all possible trials, by mixer, task and seed. Without faults, a run with the options
    `reference` finishes all of these trials.
    """

    text: str
    options: tuple[str, ...]
    drivers: int
    faults: int
    statuses: tuple[str, ...]
    ids: Mapping[tuple[str, ...], str]
    reference: tuple[str, ...] = ()
    points: int | None = None


def _ids(trials: Iterable[Trial]) -> dict[tuple[str, ...], str]:
    return {
        (str(trial.levels["mixer"]), str(trial.levels["task"]), str(trial.settings.seed)): trial.id
        for trial in trials
    }


def _search_trials(study: Study) -> Iterable[Trial]:
    """Return the trials of all points of a search."""
    search = study.search
    return (trial for point in enumerate_points(search.choose) for trial in search.trials_of(point))


_GRID = study_text(
    study={"name": NAME, "title": "Forty trials of a tenth of a second", "keep_weights": True},
    model={"recipe": "{mixer} >> ff(16)", "d_model": 16},
    train={**_TRAIN, "epochs": 2},
    factors={"mixer": ["conv(k=3)", "conv(k=5)"], "task": ["reverse", "not"], "seed": list(range(10))},
    table=[{"name": "reached", "rows": "mixer", "columns": "task", "value": "loss"}],
)
_POINTS = 10
_SEARCH = study_text(
    study={"name": NAME, "title": "Ten of fourteen points", "keep_weights": True},
    model={"recipe": "{mixer} >> ff(16)", "d_model": 16},
    train={**_TRAIN, "epochs": 4},
    factors={"seed": [0, 1]},
    search={"trials": _POINTS, "metric": "loss", "direction": "min", "scheduler": "asha"},
    space={
        "mixer": f"choice({', '.join(f'conv(k={k})' for k in range(3, 10))})",
        "task": "choice(reverse, not)",
    },
)

GRID = Scene(
    text=_GRID,
    options=("--local",),
    drivers=1,
    faults=12,
    statuses=("done",),
    ids=_ids(load_study(_GRID).trials),
)
_SMALL = study_text(
    study={"name": NAME, "title": "Eight trials of a tenth of a second", "keep_weights": True},
    model={"recipe": "{mixer} >> ff(16)", "d_model": 16},
    train={**_TRAIN, "epochs": 2},
    factors={"mixer": ["conv(k=3)", "conv(k=5)"], "task": ["reverse", "not"], "seed": [0, 1]},
    table=[{"name": "reached", "rows": "mixer", "columns": "task", "value": "loss"}],
)
SMALL = Scene(
    text=_SMALL,
    options=("--local",),
    drivers=1,
    faults=1,
    statuses=("done",),
    ids=_ids(load_study(_SMALL).trials),
)
"""The study under errors of the file system, each of which needs a run of its own."""

SEARCH = Scene(
    text=_SEARCH,
    options=("--local",),
    drivers=2,
    faults=6,
    statuses=("done", "pruned"),
    ids=_ids(_search_trials(load_study(_SEARCH))),
    reference=(
        "--set",
        "search.sampler=grid",
        "--set",
        "search.trials=100",
        "--set",
        "search.scheduler=none",
    ),
    points=_POINTS,
)
RAY = Scene(text=_GRID, options=("--ray",), drivers=1, faults=4, statuses=("done",), ids=GRID.ids)

BUCKET = Scene(text=_GRID, options=("--local",), drivers=1, faults=6, statuses=("done",), ids=GRID.ids)

SCENES: dict[str, tuple[int, Scene]] = {
    "grid": (16, GRID),
    "search": (3, SEARCH),
    "ray": (1, RAY),
    "bucket": (0, BUCKET),
}
"""The scenes by name with their number of episodes per twenty; 0 for those run by name only."""
