"""The last text that a process prints decides whether its death is the trial's own failure."""

import faulthandler
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from activemem.engine.trial.failures import (
    CrashCounts,
    crash_report_file,
    failure_by_death,
    recording_crashes,
    take_crash_report,
)

ONE_DEATH = CrashCounts(in_run=1, in_all=1)
TIMEOUT = "Timeout (0:00:12)!\nThread 0x1 (most recent call first):\n"


def die(folder, text):
    """Simulate a process that prints a text and dies."""
    with recording_crashes(folder) as descriptor:
        os.write(descriptor, text.encode())
    return take_crash_report(folder)


def test_a_process_that_does_not_die_leaves_no_report(tmp_path):
    with recording_crashes(tmp_path):
        pass
    assert take_crash_report(tmp_path) == ""


def test_a_passed_limit_is_the_end_of_a_trial_unless_there_is_none_now(tmp_path):
    report = die(tmp_path, TIMEOUT)
    told = "time limit passed at epoch 4, in native code that did not return"
    reasons = [failure_by_death(ONE_DEATH, report, limit, "at epoch 4") for limit in (2.0, None)]
    assert reasons == [f"{told}\n{TIMEOUT}", None]


def test_any_other_death_may_be_tried_again(tmp_path):
    words = die(tmp_path, "Fatal Python error: Segmentation fault\n\nCurrent thread\n")
    assert failure_by_death(ONE_DEATH, words, 2.0, "at epoch 1") is None
    reason = failure_by_death(CrashCounts(in_run=3, in_all=3), words, 2.0, "at epoch 1")
    assert reason is not None
    assert reason.partition(": ")[2].startswith("segmentation fault\n")


def test_other_handlers_stay_and_a_missing_folder_is_no_fault(tmp_path):
    before = faulthandler.is_enabled()
    with recording_crashes(tmp_path / "missing"):
        assert faulthandler.is_enabled()
    assert faulthandler.is_enabled() == before
    assert not crash_report_file(tmp_path / "missing").exists()


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("oom_kill 2", "oom_kill 3", "by: a kill by the system, for lack of memory"),
        ("oom_kill 2", "oom_kill 2", ""),
        ("oom_kill 3", "oom_kill 2", ""),
        ("nr_free_pages 1", "nr_free_pages 1", ""),
        ("", "", ""),
    ],
)
def test_a_death_without_a_word_is_one_for_memory_if_the_system_has_killed_since(
    tmp_path, monkeypatch, before, after, words
):
    real, counts = Path.read_text, [before]
    monkeypatch.setattr(
        Path, "read_text", lambda self, **_: counts[0] if str(self) == "/proc/vmstat" else real(self, **_)
    )
    with recording_crashes(tmp_path):
        pass  # a killed process does not come back
    counts[0] = after
    told = failure_by_death(CrashCounts(in_run=3, in_all=3), take_crash_report(tmp_path), None, "at epoch 2")
    assert told == ", the last time ".join(filter(None, ["the worker died 3 times at epoch 2", words]))


MEMORY_GROUPS = Path("/sys/fs/cgroup/memory")
FILL_MEMORY = """
import sys
from pathlib import Path
from activemem.engine.trial.failures import recording_crashes
Path(sys.argv[1], "cgroup.procs").write_text("0")
with recording_crashes(Path(sys.argv[2])):
    b"x" * (4 << 30)
"""


def test_a_real_kill_for_memory_is_named(tmp_path):
    group = MEMORY_GROUPS / f"activemem-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(1 << 30))
    except OSError:
        pytest.skip("needs the permission to make a memory cgroup (version 1)")
    try:
        died = subprocess.run([sys.executable, "-c", FILL_MEMORY, group, tmp_path], check=False)
        assert died.returncode == -signal.SIGKILL
        assert take_crash_report(tmp_path) == "a kill by the system, for lack of memory"
    finally:
        group.rmdir()
