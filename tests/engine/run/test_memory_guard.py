"""A worker that takes too much memory is killed, with what takes its steps with it."""

import subprocess
import sys

import pytest

from activemem.engine.run.memory_guard import _resident_bytes

LIMIT = 300_000_000
WORKER = f"""
import subprocess, sys, time
from pathlib import Path
from activemem.engine.run.memory_guard import MemoryGuard
eat = "import sys; eaten = bytes(1) * 200_000_000; print('eaten', flush=True); sys.stdin.read()"
pipes = {{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}}
others = [subprocess.Popen([sys.executable, "-c", eat], **pipes) for _ in range(2)]
for each in others:
    each.stdout.readline()
guard = MemoryGuard({LIMIT})
guard(Path("other_words"))
guard.watch([each.pid for each in others[: int(sys.argv[1])]])
guard(Path("words"))
time.sleep(float(sys.argv[2]))
"""


SHARES = """
import mmap, sys
with open("shared", "rb") as file:
    pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
sum(pages[::4096])
print(int(open("/proc/self/statm").read().split()[2]) * mmap.PAGESIZE, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="what processes share is told by Linux")
def test_what_other_processes_share_is_not_counted_for_each_of_them(tmp_path):
    with (tmp_path / "shared").open("wb") as file:
        file.truncate(200_000_000)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "cwd": tmp_path}
    with subprocess.Popen([sys.executable, "-c", SHARES], **pipes) as process:
        shared = int(process.stdout.readline())
        resident, own = (_resident_bytes(process.pid, shared=each) for each in (True, False))
        process.stdin.close()
    assert shared > 200_000_000
    assert own == resident - shared


@pytest.mark.skipif(sys.platform != "linux", reason="processes that are left here are ended by Linux")
@pytest.mark.parametrize(("others", "told"), [(2, "memory limit of 0.3 GB passed\n"), (1, "")])
def test_what_other_processes_of_a_worker_occupy_counts(tmp_path, others, told):
    (tmp_path / "words").touch()
    patience_s = 60 if told else 1
    ran = subprocess.run(
        [sys.executable, "-c", WORKER, str(others), str(patience_s)], cwd=tmp_path, check=False
    )
    assert (ran.returncode, (tmp_path / "words").read_text("utf-8")) == (-9 if told else 0, told)
