"""The last text that a process prints decides whether its death is the trial's own failure."""

import faulthandler
import os

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
