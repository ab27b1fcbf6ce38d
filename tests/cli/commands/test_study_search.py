"""`study show --best` and `study promote`: a search's best points, and the confirming study."""

import json
from pathlib import Path

import pytest

from activemem import StudyResults, load_study
from activemem.storage import Store
from activemem.studies import find_study_file

from ...reporting.search.conftest import POINTS, WITH_BASELINE, fill_search


@pytest.fixture
def searched():
    """Return a search that has run in the default store."""
    study, store = load_study(WITH_BASELINE), Store("results")
    fill_search(store, study, [(POINTS[0][0], (10.0, 12.0, 11.0, 9.0), 3000), *POINTS[1:]])
    store.records.save(study.name, {"text": study.document.text, "overrides": []})


@pytest.mark.usefixtures("searched")
def test_the_best_points_are_a_table_or_data(run):
    lines = run("study", "show", "found", "--best", "2").stdout.splitlines()
    assert "  1       *17.5 ± 0.7*       1,700  2  0.004  conv(k=…)       6" in lines
    records = json.loads(run("study", "show", "found", "--best", "1", "--json").stdout)["points"]
    assert {record["metric"]: record["value"] for record in records}["lr"] == 0.004


@pytest.mark.usefixtures("searched")
def test_a_promotion_is_a_study_that_can_run(run, golden):
    told = run("study", "promote", "found", "--best", "2", "--out", "winners.toml")
    golden(told.stdout.splitlines())
    assert "first point" in Path("winners.toml").read_text(encoding="utf-8")
    again = run("study", "promote", "found", "--out", "winners.toml")
    assert (again.exit_code, "got winners.toml" in again.stderr) == (2, True)


@pytest.mark.usefixtures("searched")
def test_a_promoted_study_with_faults_leaves_no_file(run, monkeypatch):
    monkeypatch.setattr(StudyResults, "promote", lambda *_, **__: "[study]\nnme = 1\n")
    assert run("study", "promote", "found", "--out", "winners.toml").exit_code == 2
    assert not Path("winners.toml").exists()


@pytest.mark.usefixtures("searched")
def test_fewer_points_than_asked_for_are_counted(run):
    few = run("study", "promote", "found", "--best", "20", "--out", "few.toml")
    counted = "--best 20: found has only 4 points to promote\n"
    assert (few.exit_code, few.stderr.startswith(counted)) == (0, True)
    everything = run("study", "promote", "found", "--best", "4", "--out", "all.toml")
    assert everything.stderr == few.stderr.removeprefix(counted)


def test_points_outside_a_changed_space_are_counted(run):
    study, store = load_study(WITH_BASELINE), Store("results")
    fill_search(store, study, [(POINTS[0][0], (10.0, 12.0, 11.0, 9.0), 3000), *POINTS[1:]])
    Path("same.toml").write_text(study.document.text, encoding="utf-8")
    Path("other.toml").write_text(study.document.text.replace("real(1e-4, ", "real(5e-3, "), encoding="utf-8")
    for command in ("plan", "status"):
        assert "other versions" not in run("study", command, "same.toml").stderr
        told = " ".join(run("study", command, "other.toml").stderr.split())
        assert "6 stored trials of other versions of found are not counted (other settings" in told
        assert "points outside the present space)" in told


def test_a_promotion_says_that_the_baseline_is_ahead_of_the_best_point(run, golden):
    study, store = load_study(WITH_BASELINE), Store("results")
    fill_search(store, study, [(POINTS[0][0], (20.0, 22.0, 21.0, 19.0), 3000), *POINTS[1:]])
    store.records.save(study.name, {"text": study.document.text, "overrides": []})
    told = run("study", "promote", "found", "--out", "winners.toml")
    assert told.exit_code == 0
    golden(told.stderr)
    text = Path("winners.toml").read_text(encoding="utf-8").replace("\n# ", " ")
    assert f"{told.stderr[1:-1]}." in text


@pytest.mark.usefixtures("searched")
def test_a_promotion_whose_name_has_run_with_other_points_has_a_number_in_its_name(run):
    run("study", "promote", "found", "--out", "first.toml")
    first = load_study("first.toml")
    Store("results").records.save(first.name, {"text": first.document.text, "overrides": []})
    same = run("study", "promote", "found", "--out", "same.toml")
    other = run("study", "promote", "found", "--best", "2", "--out", "other.toml")
    assert same.stdout.startswith("same.toml: found-winners, ")
    assert other.stdout.startswith("other.toml: found-winners-2, ")


@pytest.mark.usefixtures("searched")
def test_the_folders_of_study_files_are_made(run):
    assert run("study", "promote", "found", "--out", "a/b/winners.toml").exit_code == 0
    assert run("study", "new", "c/d/mine.toml").exit_code == 0
    written = [load_study(path).name for path in ("a/b/winners.toml", "c/d/mine.toml")]
    assert written == ["found-winners", "mine"]


def test_a_new_study_is_valid_and_overwrites_nothing(run, golden):
    golden(run("study", "new", "mine.toml").stdout.splitlines())
    study = load_study("mine.toml")
    assert (study.name, study.total, len(study.claims)) == ("mine", 6, 1)
    again = run("study", "new", "mine.toml")
    assert (again.exit_code, "mine.toml" in again.stderr) == (2, True)
    named = run("study", "new", "no name.toml")
    assert (named.exit_code, "got 'no name'" in named.stderr) == (2, True)
    assert not Path("no name.toml").exists()


def test_the_file_of_a_shipped_study_is_printed_as_it_is(run):
    text = run("study", "show", "search-mixers", "--toml").stdout
    assert text == find_study_file("search-mixers").read_text(encoding="utf-8")
    assert run("study", "show", "search-mixers", "--toml", "--json").exit_code == 2


def test_importances_say_how_many_points_they_rest_on(run):
    shipped = find_study_file("tune-kernel").with_name("results")
    command = ("study", "importance", "tune-kernel", "--results", str(shipped))
    assert run(*command).stdout.splitlines()[-1].startswith("over 22 ranked points")
    assert json.loads(run(*command, "--json").stdout)["points"] == 22
