"""A trial that loops, exits or aborts has its own outcome; machine faults fail no trial."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from activemem.storage import Store

from ...forked_commands import start_command
from ...study_texts import replaced
from ...waiting import wait_for

PLUGIN = Path(__file__).with_name("misbehaving.py")
PATIENCE_S = 600


@pytest.fixture
def folder(tmp_path, tiny):
    """Return a working directory with a study of four trials, two with the misbehaving seed."""
    text = replaced(tiny, ('["not", "reverse"]', '["not"]'), ("steps_per_epoch = 2", "steps_per_epoch = 5"))
    (tmp_path / "tiny.toml").write_text(text, encoding="utf-8")
    return tmp_path


def begin(folder, mode, *options, **environment):
    """Start the study in its own process, with seed 0 misbehaving."""
    return start_command(
        *("study", "run", "tiny.toml", "--local", *options),
        cwd=folder,
        environment={
            "ACTIVEMEM_PLUGINS": str(PLUGIN),
            "ACTIVEMEM_TEST_MODES": mode,
            "ACTIVEMEM_TEST_FOLDER": str(folder),
            **environment,
        },
    )


def run(folder, mode, *options, **environment):
    """Return the exit status and the lines of standard error."""
    process = begin(folder, mode, *options, **environment)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert stdout == ""
    return process.returncode, stderr.splitlines()


def outcomes(folder):
    frame = Store(folder / "results").trials().sort("recipe", "seed")
    return list(
        zip(frame["seed"], frame["status"], frame["reason"].str.split("\n").list.first(), strict=True)
    )


@pytest.mark.heavy
def test_a_step_that_never_ends_is_left_soon_after_the_time_limit_and_the_next_trials_run(folder):
    status, _ = run(folder, "loop", ACTIVEMEM_TIME_LIMIT_S="8")  # others end within it on a busy machine
    late = "time limit of 8 s passed at epoch 1"
    assert (status, outcomes(folder)) == (1, [(0, "failed", late), (1, "done", None)] * 2)
    assert Store(folder / "results").trials()["seconds"].max() < 8 + 5 + 30


@pytest.mark.heavy
@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=["Ctrl-C", "SIGTERM", "a closed terminal"]
)
def test_one_signal_ends_a_step_that_never_ends_and_says_how_to_continue(folder, number, golden):
    process = begin(folder, "loop")
    wait_for(lambda: any((folder / "results").glob("checkpoints/*/begun")))
    process.send_signal(number)
    asked = time.monotonic()
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert time.monotonic() - asked < PATIENCE_S
    assert process.returncode == 130
    golden(stderr.splitlines()[0])
    assert stderr.splitlines()[-1].endswith("Continue: activemem study run tiny.toml --local")
    assert outcomes(folder) == []


def test_a_second_ctrl_c_ends_a_step_at_once(folder, golden):
    process = begin(folder, "loop")
    wait_for(lambda: any((folder / "results").glob("checkpoints/*/begun")))
    process.send_signal(signal.SIGINT)
    golden(process.stderr.readline())
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    golden(stderr.splitlines()[-1])


def test_a_block_that_exits_is_an_outcome(folder):
    status, _ = run(folder, "exit")
    assert status == 1
    assert outcomes(folder) == [(0, "failed", "SystemExit at epoch 1: 0"), (1, "done", None)] * 2


def test_a_run_ends_at_the_requested_number_of_failures(folder):
    status, told = run(folder, "exit", "--max-failures", "1")
    assert (status, len(outcomes(folder))) == (1, 1)
    again = "Continue: activemem study run tiny.toml --local --max-failures 1"
    see = "see: activemem table render tiny"
    assert told[-2:] == [see, f"stopped because 1 trial failed. {again}"]


def test_a_trial_that_aborts_its_process_does_not_block_the_others(folder):
    text = (folder / "tiny.toml").read_text(encoding="utf-8")
    (folder / "tiny.toml").write_text(text.replace(', "conv(k=3)"]', "]"), encoding="utf-8")
    assert [run(folder, "abort")[0] for _ in range(3)] == [-signal.SIGABRT] * 3
    assert outcomes(folder) == [(1, "done", None)]


@pytest.mark.parametrize(
    ("mode", "what"),
    [("module", "a module is missing: No module named 'no_such_module'"), ("gpu", "a GPU is missing: ")],
)
def test_a_machine_failure_stops_the_study_with_one_line_and_fails_no_trial(folder, mode, what):
    status, told = run(folder, mode)
    assert (status, len(told), outcomes(folder)) == (2, 1, [])
    assert told[0].startswith(f"stopped: {what}")
    assert told[0].endswith("Continue: activemem study run tiny.toml --local")


def test_a_kernel_that_fails_is_one_trial_s_failure_and_the_next_trials_are_for_another_process(folder):
    text = (folder / "tiny.toml").read_text(encoding="utf-8")
    (folder / "tiny.toml").write_text(text.replace(', "conv(k=3)"]', "]"), encoding="utf-8")
    status, told = run(folder, "kernel")
    failed = "AcceleratorError at epoch 1: CUDA error: device-side assert triggered"
    assert (status, outcomes(folder)) == (2, [(0, "failed", failed)])
    assert "cannot use its GPU any more: CUDA error" in told[-1]
    assert run(folder, "kernel")[0] == 1
    assert outcomes(folder) == [(0, "failed", failed), (1, "done", None)]


def test_missing_gpus_are_reported_before_anything_is_trained(folder):
    status, told = run(folder, "exit", ACTIVEMEM_GPUS="1", CUDA_VISIBLE_DEVICES="")
    assert (status, len(told)) == (2, 1)
    assert "gpus: expected 1 " in told[0]


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a disk of its own")
@pytest.mark.parametrize(
    ("place", "how"),
    [
        pytest.param("full", "local", marks=pytest.mark.heavy),
        ("read-only", "local"),
        pytest.param("full", "ray", marks=pytest.mark.slow),
    ],
)
def test_a_disk_that_takes_no_more_stops_the_study_with_one_line(folder, place, how):
    words = f"{sys.executable} -m activemem study run tiny.toml --results disk/results --{how}"
    limits = "size=64k,nr_inodes=300" if place == "full" else "ro"
    mount = f"mkdir disk && mount -t tmpfs -o {limits} tmpfs disk"
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs namespaces of users and mounts")
    inside = f"{mount} && {words}; status=$?; find disk -name '.*.*' | wc -l; exit $status"
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", inside],
        cwd=folder,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "RAY_AUTH_MODE": "disabled"},
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE_S,
        check=False,
    )
    *before, last = done.stderr.splitlines()
    assert done.returncode == 2, done
    assert ("No space left" if place == "full" else "Read-only file system") in last
    expected = ("new store: ", "starting Ray ")
    assert all(" done " in line or line.startswith(expected) for line in before), before
    assert done.stdout == "0\n"  # temporary files
