"""A worker that takes too much memory is killed, and says why in a file."""

import subprocess
import sys

import pytest

WORKER = """
import sys, time
from pathlib import Path
from activemem.engine.run.memory_guard import MemoryGuard
guard = MemoryGuard(300_000_000)
guard(Path("other_words"))
guard(Path("words"))
eaten = bytearray(b"x" * int(sys.argv[1]))
time.sleep(float(sys.argv[2]))
"""


@pytest.mark.parametrize(
    ("taken", "status", "words"), [(400_000_000, -9, "memory limit of 0.3 GB passed\n"), (1_000, 0, "")]
)
def test_a_worker_beyond_its_memory_limit_is_killed(tmp_path, taken, status, words):
    (tmp_path / "words").touch()
    patience_s = 60 if words else 1
    ran = subprocess.run(
        [sys.executable, "-c", WORKER, str(taken), str(patience_s)], cwd=tmp_path, check=False
    )
    assert (ran.returncode, (tmp_path / "words").read_text("utf-8")) == (status, words)
