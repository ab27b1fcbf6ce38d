"""After any kill during a study, the same command ends in the same table without repeated work."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import polars as pl
import psutil
import pytest

from activemem.storage import Store

from ...study_texts import study_text
from ...waiting import PATIENCE_S, wait_for
from .ray_nodes import WITHOUT_GPU

STUDY = study_text(
    study={"name": "crash", "title": "Trials of about a second"},
    model={"recipe": "{mixer} >> ff(32)", "d_model": 32},
    train={"optimizer": {"name": "adam", "lr": 0.01}, "batch_size": 16, "epochs": 6, "steps_per_epoch": 40},
    factors={
        "mixer": ["conv(k=5)", "sa(heads=2, head_width=8) + conv(k=5)"],
        "task": ["reverse", "addition"],
        "seed": [0, 1, 2],
    },
    table=[{"name": "reached", "rows": "mixer", "columns": "task", "value": "max_length"}],
)
TRIALS = 12
ENVIRONMENT = os.environ | {"RAY_AUTH_MODE": "disabled", "ACTIVEMEM_CPUS": "1"} | WITHOUT_GPU


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "crash.toml").write_text(STUDY, encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Return the table of an undisturbed run in one process."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "crash.toml").write_text(STUDY, encoding="utf-8")
    words = ["study", "run", "crash.toml", "--results", "results", "--local"]
    subprocess.run(command(*words), cwd=folder, env=ENVIRONMENT, check=True, capture_output=True)
    return table(folder)


def command(*words):
    return [sys.executable, "-m", "activemem", *words]


def begin(folder, *options):
    """Start the study in its own process."""
    words = ["study", "run", "crash.toml", "--results", "results", *options]
    return subprocess.Popen(
        command(*words),
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def stored(folder):
    return len(list((folder / "results" / "trials" / "crash").glob("*.parquet")))


def until(folder, trials, process):
    """Wait until this many trials are stored and the process still runs."""
    wait_for(lambda: stored(folder) >= trials or process.poll() is not None)
    assert process.poll() is None, process.communicate()[0]


def descendants(process, name):
    """Return the descendants of a process, filtered by their command lines."""
    found = []
    for child in psutil.Process(process.pid).children(recursive=True):
        try:
            if name in " ".join(child.cmdline()):
                found.append(child)
        except psutil.Error:
            continue
    return found


@contextmanager
def all_end(process):
    """Wait at the end of a context until a process and its descendants have ended, killing Ray's agents."""
    family = psutil.Process(process.pid).children(recursive=True)
    agents = [each for each in descendants(process, "Agent") if each in family]
    yield
    psutil.wait_procs([each for each in family if each not in agents], timeout=PATIENCE_S)
    for each in agents:
        with suppress(psutil.NoSuchProcess):
            each.kill()
    psutil.wait_procs(agents, timeout=PATIENCE_S)


def rows(folder):
    frame = Store(folder / "results").trials().select("trial", "attempt", "status", "started", "finished")
    return {row["trial"]: row for row in frame.to_dicts()}


def table(folder):
    words = ["table", "render", "crash", "--format", "markdown", "--results", "results"]
    done = subprocess.run(
        command(*words), cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    return done.stdout


def untouched(folder, before):
    """Return the rows of a store after checking that the earlier ones are unchanged."""
    after = rows(folder)
    assert {trial: after[trial] for trial in before} == before
    return after


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def node(*options):
    """Start a Ray node with one core, which is killed with its children at the end."""
    words = [str(Path(sys.executable).parent / "ray"), "start", "--num-cpus=1", "--block", *options]
    process = subprocess.Popen(
        words, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield process
    finally:
        family = (
            [process, *psutil.Process(process.pid).children(recursive=True)] if process.poll() is None else []
        )
        for each in family:
            each.kill()
        process.wait()


@contextmanager
def cluster():
    """Start two nodes on this machine; return their address."""
    port = free_port()
    address = f"127.0.0.1:{port}"
    head = ["--head", f"--port={port}", "--node-ip-address=127.0.0.1", "--include-dashboard=false"]
    with node(*head) as first:
        wait_for(lambda: _listens(port))
        with node(f"--address={address}", "--node-ip-address=127.0.0.1") as second:
            wait_for(lambda: descendants(second, "raylet"))
            yield address, first


def _listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow  # three runs, two of them on Ray
def test_a_study_survives_the_deaths_of_a_worker_its_driver_and_its_cluster(folder, undisturbed):
    first = begin(folder, "--ray")
    until(folder, 1, first)
    wait_for(lambda: descendants(first, "ray::ResourceTrainable"))[0].kill()  # Tune's wrap around the actor
    until(folder, 3, first)
    with all_end(first):
        first.send_signal(signal.SIGKILL)
        first.communicate()
    before = rows(folder)

    with cluster() as (address, head):
        second = begin(folder, "--address", address)
        until(folder, len(before) + 1, second)
        descendants(head, "gcs_server")[0].kill()
        told = second.communicate(timeout=PATIENCE_S)[0].splitlines()
        assert second.returncode == 2, told
        lost = "the head of the Ray cluster no longer answers"
        assert any(lost in line for line in told), told
    before = untouched(folder, before)
    assert len(before) < TRIALS

    last = begin(folder, "--local")
    output, _ = last.communicate(timeout=PATIENCE_S)
    assert last.returncode == 0, output
    after = untouched(folder, before)
    assert len(after) == TRIALS
    assert {row["status"] for row in after.values()} == {"done"}
    assert len(list((folder / "results" / "trials" / "crash").iterdir())) == 1  # compacted
    assert pl.read_parquet(folder / "results" / "trials").height == TRIALS  # one row each
    assert list((folder / "results" / "checkpoints").iterdir()) == []
    assert list((folder / "results" / "unfinished").iterdir()) == []
    assert table(folder) == undisturbed
