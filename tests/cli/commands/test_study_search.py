"""`study show --best` and `study promote`: what a search's best points are, and the study that decides."""

import json
from pathlib import Path

import pytest

from activemem.storage import Store
from activemem.studies.study import load_study

from ...reporting.search.conftest import POINTS, WITH_BASELINE, fill_search


@pytest.fixture
def searched():
    """A search that has run in the default store."""
    study, store = load_study(WITH_BASELINE), Store("results")
    fill_search(store, study, [(POINTS[0][0], (10.0, 12.0, 11.0, 9.0), 3000), *POINTS[1:]])
    store.save_study_record(study.name, {"text": study.text, "overrides": []})


@pytest.mark.usefixtures("searched")
def test_the_best_points_are_a_table_or_data(run):
    lines = run("study", "show", "found", "--best", "2").stdout.splitlines()
    assert "  1       *17.5 ± 0.7*       1,700  2  0.004  conv(k=…)       6" in lines
    records = json.loads(run("study", "show", "found", "--best", "1", "--json").stdout)["points"]
    assert {record["metric"]: record["value"] for record in records}["lr"] == 0.004


@pytest.mark.usefixtures("searched")
def test_what_is_promoted_is_a_study_that_can_run(run):
    told = run("study", "promote", "found", "--best", "2", "--out", "winners.toml")
    assert told.stdout.splitlines() == [
        "winners.toml: found-winners, 15 trials",
        "activemem study run winners.toml",
    ]
    assert "what the search began with" in Path("winners.toml").read_text(encoding="utf-8")
    run("study", "promote", "found", "--path", "--out", "path.toml")
    assert load_study("path.toml").design.kind == "path"
    again = run("study", "promote", "found", "--out", "path.toml")
    assert (again.exit_code, "expected a new file, got path.toml" in again.stderr) == (2, True)
