"""Nodes that join a cluster during a study are checked before trials run there."""

import subprocess
import sys

import pytest

from activemem.storage import Store

from ...waiting import wait_for
from .ray_nodes import ENVIRONMENT, head, other_version, worker

PATIENCE_S = 300
TRIALS = 32


def begin(folder, address):
    """Start a study on the cluster in its own process."""
    words = ["study", "run", "tiny.toml", "--address", address, "--set", "train.epochs=40"]
    return subprocess.Popen(
        [sys.executable, "-m", "activemem", *words],
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_a_late_node_that_cannot_train_is_left_out_and_another_replaces_one_that_leaves(tmp_path, tiny):
    (tmp_path / "tiny.toml").write_text(tiny.replace("[0, 1]", str(list(range(8)))), encoding="utf-8")
    packages = tmp_path / "packages"
    packages.mkdir()
    with other_version(packages) as path, head() as address:
        with worker(address, 2):
            process = begin(tmp_path, address)
            wait_for(lambda: any((tmp_path / "results" / "trials").glob("*/*")) or process.poll() is not None)
            with worker(address, 3, path=path):
                lines = [process.stderr.readline()]
                while process.poll() is None and "(127.0.0.3)" not in lines[-1]:
                    lines.append(process.stderr.readline())
            left = TRIALS - len(list((tmp_path / "results" / "trials").glob("*/*")))
        with worker(address, 4, awaited=False):
            _, stderr = process.communicate(timeout=PATIENCE_S)
    told = "".join(lines) + stderr
    assert left > 0, "expected the first node to have left some"
    assert process.returncode == 0, told
    assert told.count("left out: expected activemem") == 1
    assert "(127.0.0.4)" in told
    assert set(Store(tmp_path / "results").trials()["status"]) == {"done"}
    assert len(Store(tmp_path / "results").trials()) == TRIALS
