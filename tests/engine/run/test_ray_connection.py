"""Starting Ray on this machine, and checking the code of its workers."""

import shutil
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import ray

import activemem
from activemem import load_study, run_study
from activemem.engine import Machine
from activemem.engine.core.events import NOBODY
from activemem.engine.run import ray_connection
from activemem.engine.run.ray_connection import (
    STARTS,
    check_workers_here,
    code_fault,
    connected,
    look_at_code,
)
from activemem.engine.trial.failures import MachineError
from activemem.storage import Store

HERE = Machine(gpus=0.0)
SLOW = "The current node timed out during startup. This could happen because the raylet failed."


class Attempts:
    def __init__(self):
        self.numbers = []

    def __call__(self, event):
        assert event.kind == "starting_ray"
        self.numbers.append(event.attempt)


@pytest.mark.heavy  # Ray begins
def test_workers_import_the_drivers_package_whatever_the_working_folder_holds(tmp_path, monkeypatch):
    (tmp_path / "activemem").mkdir()
    (tmp_path / "activemem" / "__init__.py").write_text("raise ImportError('another one')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with connected(HERE, NOBODY):
        mine = look_at_code()
        check_workers_here(mine)
        with pytest.raises(MachineError, match=r"expected .* \(files 00000000\), in .*; got "):
            check_workers_here({**mine, "digest": "0" * 16})
        with pytest.raises(MachineError, match="activemem in /elsewhere, got "):
            check_workers_here({**mine, "folder": "/elsewhere"})
    assert mine["folder"] == str(Path(activemem.__file__).parent)


def test_the_same_code_in_another_folder_is_distinguished_from_other_code(tmp_path, golden):
    mine = look_at_code()
    assert look_at_code() == mine
    assert code_fault(mine, {**mine, "folder": "/elsewhere"}) is None
    other = {"folder": "/b/activemem", "version": "", "digest": "", "fault": "ImportError: another one"}
    golden(code_fault({**mine, "folder": "/a/activemem"}, other))


def test_other_code_is_named_by_version_commit_and_files(golden):
    mine = {"folder": "/a", "version": "0.1.0, commit 639f98f", "digest": "9142966a" * 2, "fault": ""}
    theirs = mine | {"version": "0.1.1, commit abcdef0", "digest": "373623b2" * 2}
    golden(code_fault(mine, theirs))
    assert look_at_code()["version"].startswith(f"{activemem.__version__}, commit ")


def test_a_start_that_takes_longer_than_ray_waits_is_tried_again(monkeypatch):
    answers = [Exception(SLOW), Exception(SLOW), None]

    def start(**_keys):
        if (answer := answers.pop(0)) is not None:
            raise answer

    monkeypatch.setattr(ray, "init", start)
    attempts = Attempts()
    ray_connection._start(HERE, attempts)
    assert attempts.numbers == [1, 2, 3]


@pytest.mark.parametrize(
    ("error", "number"),
    [
        (Exception(SLOW), STARTS),
        (PermissionError("no access to\n/tmp/ray"), 1),
    ],
    ids=str,
)
def test_a_start_that_fails_is_the_machines_failure_and_names_the_next_step(
    monkeypatch, error, number, golden
):
    def start(**_keys):
        raise error

    monkeypatch.setattr(ray, "init", start)
    attempts = Attempts()
    with pytest.raises(MachineError) as failed, connected(HERE, attempts):
        pass
    golden(str(failed.value))
    assert attempts.numbers == list(range(1, number + 1))


def test_ray_does_not_start_where_its_folder_is_full(monkeypatch):
    monkeypatch.setenv("RAY_TMPDIR", "/tmp")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=2**20))
    said = r"/tmp, where it writes, has only 1\.0 MB left; make room"
    with pytest.raises(MachineError, match=said), connected(HERE, Attempts()):
        pass


def test_ray_does_not_start_without_a_folder_that_its_sockets_fit_in(monkeypatch):
    monkeypatch.setattr(ray_connection, "MAX_FOLDER_BYTES", 3)
    said = "at most 3 bytes; set RAY_TMPDIR to one"
    with pytest.raises(MachineError, match=said), connected(HERE, Attempts()):
        pass


@pytest.mark.usefixtures("returning_handlers")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_a_stop_while_ray_starts_ends_the_run_in_order(monkeypatch, tiny, tmp_path, number):
    def start(**_keys):
        signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(number))  # as Ray does
        signal.raise_signal(number)
        time.sleep(60)

    monkeypatch.setattr(ray, "init", start)
    before = signal.getsignal(number)
    summary = run_study(load_study(tiny), Store(tmp_path), HERE, local=False)
    assert (summary.stopped, summary.ran, summary.left) == (True, 0, 8)
    assert signal.getsignal(number) == before
