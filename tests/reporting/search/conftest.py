"""A search in a conditional space as rows of a store, without training."""

import json

import pytest

from activemem import load_study
from activemem.storage import Store

from ...studies.test_plan import keep
from ...study_texts import study_text

SEARCH = study_text(
    study={"name": "found", "title": "What a search found"},
    model={"recipe": "choice(sa, conv(k=integer(2, 9))) >> ff(8)"},
    task={"name": "sort"},
    search={"trials": 20, "metric": "max_length", "direction": "max"},
    space={"lr": "real(1e-4, 1e-1, log=true)"},
    train={"optimizer": {"name": "adam", "lr": "{lr}"}},
    factors={"seed": [0, 1]},
)

PRUNES = ["search.scheduler=median"]

WITH_BASELINE = SEARCH.replace(
    "[model]", 'baseline = { lr = 0.01, choice = "sa" }\nbaseline_seeds = 4\n\n[model]', 1
)

CONV = "conv(k=integer(2, 9))"

# Values, what each seed measured or why it has no value, and parameters, in the order in which points ended.
POINTS = (
    ({"lr": 0.01, "choice": "sa"}, (10.0, 12.0), 3000),
    ({"lr": 0.001, "choice": CONV, "conv.k": 3}, (8.0, 8.0), 1000),
    ({"lr": 0.002, "choice": CONV, "conv.k": 5}, (14.0, 16.0), 1500),
    ({"lr": 0.05, "choice": CONV, "conv.k": 9}, (20.0, "failed"), 2500),
    ({"lr": 0.09, "choice": "sa"}, ("pruned", "pruned"), 3000),
    ({"lr": 0.004, "choice": CONV, "conv.k": 6}, (17.0, 18.0), 1700),
    ({"lr": 0.02, "choice": "sa"}, (15.0, 13.0), 3000),
)


@pytest.fixture(scope="session")
def search_store(tmp_path_factory):
    """Return a store with all points."""
    store, study = Store(tmp_path_factory.mktemp("search")), load_study(SEARCH)
    fill_search(store, study, POINTS)
    return store


def fill_search(store, study, points):
    """Store the measurements of points, with an hour each."""
    for number, (values, ends, parameters) in enumerate(points):
        for trial, end in zip(study.search.trials_of(values), ends, strict=True):
            status = end if isinstance(end, str) else "done"
            metrics = (("max_length", end), ("loss", 1 / end)) if status == "done" else ()
            keep(
                store,
                trial,
                status=status,
                minutes=number,
                metrics=metrics,
                parameters=parameters,
                seconds=1800.0,
                settings=trial.settings.model_dump_json(),
                factors=json.dumps(dict(trial.levels)),
            )
