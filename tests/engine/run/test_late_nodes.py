"""Nodes join and leave a cluster during a study."""

import subprocess
import sys

import pytest

from activemem.storage import Store

from ...waiting import wait_for
from .ray_nodes import ENVIRONMENT, head, worker

PATIENCE_S = 300
TRIALS = 32


def begin(folder, address):
    """Start a study on the cluster in its own process."""
    words = ["study", "run", "tiny.toml", "--address", address, "--set", "train.epochs=100"]
    return subprocess.Popen(
        [sys.executable, "-m", "activemem", *words],
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_a_node_that_joins_later_replaces_one_that_leaves(tmp_path, tiny):
    (tmp_path / "tiny.toml").write_text(tiny.replace("[0, 1]", str(list(range(8)))), encoding="utf-8")
    with head() as address:
        with worker(address, 2):
            process = begin(tmp_path, address)
            wait_for(lambda: any((tmp_path / "results" / "trials").glob("*/*")) or process.poll() is not None)
        left = TRIALS - len(list((tmp_path / "results" / "trials").glob("*/*")))
        with worker(address, 4, awaited=False):
            _, stderr = process.communicate(timeout=PATIENCE_S)
    assert left > 0, "expected the first node to have left some"
    assert process.returncode == 0, stderr
    assert set(Store(tmp_path / "results").trials()["status"]) == {"done"}
    assert len(Store(tmp_path / "results").trials()) == TRIALS
