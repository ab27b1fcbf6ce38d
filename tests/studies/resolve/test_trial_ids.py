"""Ids of trials never change: those of included studies, and of committed results."""

import hashlib
import json
from pathlib import Path

import polars as pl
import pytest

import activemem
from activemem import load_study
from activemem.grammar.dimensions import representative_values
from activemem.studies.planning.status import tried_trial
from activemem.studies.resolve.result_changes import changes_of
from activemem.studies.resolve.trial import settings_from_json, settings_to_json, trial_id

from ...quick_cases import one_in
from ...study_texts import study_text

STUDIES = Path(activemem.__file__).parent / "studies"
LINES = Path(__file__).with_name("trial_ids.txt").read_text().splitlines()[1:]
IDS = {name: (int(count), digest) for name, count, digest in map(str.split, LINES)}
RESULTS = sorted(path.name for path in (STUDIES / "results" / "trials").iterdir())


def ids(study):
    """Return the ids of a grid, or of the extreme points of a search."""
    if study.search is None:
        return {trial.id for trial in study.trials}
    points = [
        study.search.choose(lambda _, found, end=end: representative_values(found)[end]) for end in (0, -1)
    ]
    return {trial.id for point in points for trial in study.search.trials_of(point)}


@pytest.mark.parametrize("path", sorted(STUDIES.glob("*.toml")), ids=lambda path: path.stem)
def test_a_shipped_study_is_sound_and_its_trials_keep_their_ids(path):
    study = load_study(path)
    assert (study.name, study.source_sheet.is_given) == (path.stem, True)
    found = ids(study)
    assert (len(found), hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()[:16]) == IDS[path.stem]


@pytest.mark.parametrize("name", one_in(3, RESULTS))
def test_committed_rows_are_of_the_trials_of_their_study_and_have_the_ids_of_their_settings(name):
    rows = pl.read_parquet(
        STUDIES / "results" / "trials" / name / "*.parquet", columns=["trial", "settings", "factors"]
    )
    written = name.removesuffix("-random")  # the same search with points that are drawn
    study = load_study(written, [f"study.name={name}"])
    if study.search is None:
        assert set(rows["trial"]) <= ids(study.with_later_seeds())
    else:
        assert all(
            tried_trial(study, row["trial"], json.loads(row["factors"])) for row in rows.iter_rows(named=True)
        )
    for trial, text, _ in rows.iter_rows():
        settings = settings_from_json(text)
        assert trial_id(settings) == trial
        assert settings_from_json(settings_to_json(settings)) == settings


def test_rows_keep_the_name_that_a_key_has_in_ids():
    settings = load_study("persistent-vectors-small").trials[0].settings
    assert settings.task.context == 64
    assert json.loads(settings_to_json(settings))["task"]["block"] == 64


SHAPES = {"vocab": 64, "length": 32, "pairs": 4}
BEST = {"keep": "best"}


@pytest.mark.parametrize(
    ("task", "train", "recipe", "changes"),
    [
        ({"name": "mqar", **SHAPES}, {}, "sa", 0),
        ({"name": "mqar", **SHAPES, "tests": [[64, 4]]}, {}, "sa", 0),
        ({"name": "mqar", **SHAPES, "tests": [[64, 8]]}, {}, "sa", 1),
        ({"name": "mqar", **SHAPES, "mixture": [[32, 2, 1], [32, 4, 1]]}, {}, "sa", 1),
        ({"name": "mad", "problem": "in_context_recall"}, {}, "sa", 0),
        ({"name": "mad", "problem": "in_context_recall"}, BEST, "sa", 1),
        ({"name": "parity"}, BEST, "sa", 0),
        ({"name": "parity"}, {"precision": "bf16"}, "sa + retention", 1),
        ({"name": "parity"}, {}, "sa + retention", 0),
        ({"name": "parity"}, {"precision": "bf16"}, "sa", 0),
    ],
)
def test_a_change_of_results_gives_new_ids_to_the_trials_it_concerns(task, train, recipe, changes):
    made = study_text(task=task, train=train | {"curriculum": None}, model={"recipe": f"{recipe} >> ff(8)"})
    (trial,) = load_study(made).trials
    assert changes_of(trial.settings) == changes
