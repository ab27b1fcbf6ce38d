"""Export of a study to another program, and tracking of a run as configured."""

import json
from pathlib import Path

import pytest

from activemem.tracking import contract as opening

from ..store_factories import make_partial_store


def test_an_export_sends_what_the_program_does_not_have(run, tiny):
    pytest.importorskip("tensorboard")
    make_partial_store(tiny)
    first = run("study", "export", tiny, "--to", "tensorboard", "--out", "runs")
    assert (first.exit_code, first.stderr) == (0, "")
    assert first.stdout == "tiny for tensorboard in runs: 7 trials, 7 epochs, 2 tables\n"
    second = run("study", "export", tiny, "--to", "tensorboard", "--out", "runs", "--json")
    assert json.loads(second.stdout) == {
        "schema": 3,
        "study": "tiny",
        "to": "tensorboard",
        "out": "runs",
        "trials": 0,
        "epochs": 0,
        "known": 7,
        "tables": 2,
    }


def test_a_wrong_program_is_refused_with_the_nearest(run, tiny, golden):
    result = run("study", "export", tiny, "--to", "tensorbord", "--out", "runs")
    assert result.exit_code == 2
    golden(result.stderr)


def test_a_program_whose_library_is_missing_is_reported_before_anything_runs(run, tiny, monkeypatch):
    monkeypatch.setattr(opening, "find_spec", lambda name: None)
    Path("activemem.toml").write_text('[track]\ntensorboard = "runs"\n', encoding="utf-8")
    result = run("study", "run", tiny, "--local")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.endswith("pip install 'activemem[tensorboard]'\n")
    assert not list(Path().glob("results/*"))


def test_a_run_sends_its_trials_to_the_trackers_in_the_settings_file(run, tiny):
    pytest.importorskip("tensorboard")
    Path("activemem.toml").write_text('[track]\ntensorboard = "runs"\n', encoding="utf-8")
    assert run("study", "run", tiny, "--local", "--max-trials", "2").exit_code == 0
    assert len(list(Path("runs/tiny").glob("*-*/events.*"))) == 2
    again = run("study", "export", "tiny", "--to", "tensorboard", "--out", "runs")
    assert (
        again.stdout == "tiny for tensorboard in runs: 0 trials, 0 epochs, 2 tables; 2 trials already there\n"
    )


def test_a_run_sends_trials_that_were_stored_before_it_once_each(run, tiny):
    pytest.importorskip("tensorboard")
    assert run("study", "run", tiny, "--local", "--max-trials", "3").exit_code == 0
    Path("activemem.toml").write_text('[track]\ntensorboard = "runs"\n', encoding="utf-8")
    for _ in range(2):
        assert run("study", "run", tiny, "--local").exit_code == 0
        files = [path for path in Path("runs/tiny").glob("*/events.*") if path.parent.name != "tables"]
        assert len(files) == len({path.parent for path in files}) == 8
    again = run("study", "export", tiny, "--to", "tensorboard", "--out", "runs")
    assert again.stdout.startswith("tiny for tensorboard in runs: 0 trials, 0 epochs")
