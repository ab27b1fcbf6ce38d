"""Stores with files of other users."""

import errno
import os
from pathlib import Path

import pytest

from .store_factories import make_partial_store


@pytest.fixture
def forbid(monkeypatch):
    """Return a function that takes from this process, even from root, the permission to read files."""
    real_open, real_access, closed = os.open, os.access, set()

    def open_file(path, *arguments, **options):
        if Path(path).absolute() in closed:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real_open(path, *arguments, **options)

    def access(path, mode):
        return Path(path).absolute() not in closed and real_access(path, mode)

    monkeypatch.setattr(os, "open", open_file)
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
