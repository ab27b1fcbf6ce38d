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


@pytest.fixture
def damaged(tiny):
    """Return a store with a damaged row, and a checkpoint that nothing uses."""
    store = make_partial_store(tiny)
    ended, damaged = store.trials()["trial"].to_list()[:2]
    (row,) = (store.root / "trials" / "tiny").glob(f"{damaged}-*")
    row.write_bytes(row.read_bytes()[:100])
    leftover = store.files.checkpoint_dir(ended) / "state.pt.damaged"
    leftover.parent.mkdir(parents=True)
    leftover.write_bytes(bytes(2000))
    os.utime(leftover, (0, 0))
    return store


def contents(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", ["check", "repair", "clean"])
@pytest.mark.parametrize("folder", ["trials", "trials/tiny", "metrics", "checkpoints", "unfinished"])
def test_a_store_with_a_folder_that_may_not_be_entered_is_neither_repaired_nor_cleaned(
    run, damaged, forbid, command, folder
):
    closed = damaged.root / folder
    before = contents(damaged.root)
    forbid(closed, *closed.rglob("*"))
    done = run("store", command)
    fault = f"{closed}: no permission to enter this folder; its owner can grant it (chmod g+rx)\n"
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", fault)
    for path, data in before.items():
        assert path.is_file()
        assert path.is_relative_to(closed) or path.read_bytes() == data


@pytest.mark.parametrize(
    ("command", "folder"), [("repair", "trials/tiny"), ("clean", "checkpoints"), ("clean", "leftover")]
)
def test_files_in_a_folder_of_another_owner_stay_and_the_folder_is_named(
    run, damaged, monkeypatch, command, folder
):
    (leftover,) = (damaged.root / "checkpoints").iterdir()
    closed = leftover if folder == "leftover" else damaged.root / folder
    real_access = os.access

    def access(path, mode):
        is_closed = Path(path).absolute() == closed.absolute()
        return not (is_closed and mode & os.W_OK) and real_access(path, mode)

    monkeypatch.setattr(os, "access", access)
    before = contents(damaged.root)
    done = run("store", command)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        f"results: nothing is {'repaired' if command == 'repair' else 'removed'}, because this user may not "
        f"remove files from {closed}; its owner, {closed.owner()}, can grant it (chmod g+rwx)\n"
    )
    assert contents(damaged.root) == before
    assert run("store", "check").exit_code == 1  # which needs no permission to write
