"""Stores with files of other users."""

import errno
import json
import os
from pathlib import Path

import pytest

from activemem.studies import load_study

from .store_factories import make_partial_store


@pytest.fixture
def forbid(monkeypatch):
    """Return a function that takes from this process, even from root, the permission to use paths."""
    real_access, closed = os.access, set()

    def guarded(function):
        def call(path=".", *arguments, **options):
            if isinstance(path, (str, Path)) and Path(path).absolute() in closed:
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return function(path, *arguments, **options)

        return call

    def access(path, mode):
        return Path(path).absolute() not in closed and real_access(path, mode)

    for name in ("open", "listdir", "scandir"):
        monkeypatch.setattr(os, name, guarded(getattr(os, name)))
    monkeypatch.setattr(os, "access", access)
    return lambda *paths: closed.update(path.absolute() for path in paths)


COMMANDS = [
    ("study", "status"),
    ("table", "render"),
    ("study", "status", "--json"),
    ("table", "render", "--json"),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_results_of_files_that_may_not_be_read_are_not_called_missing(run, tiny, forbid, command):
    store = make_partial_store(tiny)
    store.upkeep.compact()
    (rows,) = (store.root / "trials" / "tiny").iterdir()
    forbid(rows)
    done = run(*command, tiny)
    assert (done.exit_code, "train it" in done.stderr) == (1, False)
    fault = f"no permission to read 1 of the files of tiny, first {rows}; the owner can grant it (chmod g+r)"
    assert done.stderr.splitlines()[-1] == fault


@pytest.mark.parametrize("command", COMMANDS)
def test_results_that_may_be_read_are_shown_with_the_number_of_other_files(run, tiny, forbid, command):
    store = make_partial_store(tiny)
    everything = run(*command, tiny)
    one, two, *_ = sorted((store.root / "trials" / "tiny").iterdir())
    forbid(one, two)
    done = run(*command, tiny)
    assert everything.exit_code == 0
    assert done.exit_code == 1
    assert done.stdout not in ("", everything.stdout)
    assert f"no permission to read 2 of the files of tiny, first {one};" in done.stderr


def test_a_record_that_may_not_be_read_is_not_called_missing(run, tiny, forbid):
    store = make_partial_store(tiny)
    forbid(store.root / "studies" / "tiny.json")
    Path(tiny).rename("other.toml")
    done = run("table", "render", "tiny")
    assert done.exit_code == 2
    assert "no permission to read 1 of the files of tiny, first results/studies/tiny.json;" in done.stderr


@pytest.mark.parametrize("command", [("study", "status"), ("table", "render"), ("study", "plan")])
@pytest.mark.parametrize("folder", ["results", "results/trials", "results/trials/tiny"])
def test_a_folder_that_may_not_be_entered_is_named(run, tiny, forbid, command, folder):
    make_partial_store(tiny)
    within = [path for path in Path(folder).rglob("*") if path.is_dir()]
    forbid(Path(folder), *within)
    done = run(*command, tiny)
    assert done.exit_code == 2
    fault = f"{folder}: no permission to enter this folder; its owner can grant it (chmod g+rx)"
    assert done.stderr.splitlines()[-1] == fault


def test_closed_leases_are_named(run, tiny, forbid):
    store, trial = make_partial_store(tiny), load_study(tiny).trials[-1].id
    store.files.checkpoint_dir(trial).mkdir(parents=True)
    (store.files.checkpoint_dir(trial) / "state.pt").touch()
    leases = store.leases("run").layout.leases
    leases.mkdir()
    forbid(leases, *(leases / f"{trial}-{attempt}" for attempt in range(3)))
    done = run("study", "status", tiny)
    assert done.exit_code == 2
    fault = "results/leases: no permission to enter this folder; its owner can grant it (chmod g+rx)"
    assert done.stderr.splitlines()[-1] == fault


@pytest.mark.parametrize("command", [("report", "build"), ("curve", "render")])
def test_a_folder_that_takes_no_output_names_the_option(run, tiny, forbid, command):
    curve = {"name": "loss", "kind": "line", "value": "loss", "x": "epoch", "series": "mixer"}
    lines = [
        "[[curve]]",
        'select = { task = "not" }',
        *(f"{key} = {json.dumps(value)}" for key, value in curve.items()),
    ]
    Path(tiny).write_text("\n".join([Path(tiny).read_text(encoding="utf-8"), *lines]), encoding="utf-8")
    make_partial_store(tiny)
    forbid(Path())
    done = run(*command, tiny)
    assert done.exit_code == 2
    assert done.stderr.endswith(": this file cannot be written; choose another place with --out\n")
    Path("elsewhere").mkdir()
    out = "elsewhere/" if command[0] == "curve" else "elsewhere/a.html"
    assert run(*command, tiny, "--out", out).exit_code == 0
