"""Under Ray, a trial that ends its worker has its own reason, and worker faults end the run."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from activemem.engine.core.resources import cpus_here
from activemem.storage import Store

from ...study_texts import replaced
from ...waiting import wait_for

PLUGIN = Path(__file__).with_name("misbehaving.py")
PATIENCE_S = 600


@pytest.fixture
def folder(tmp_path, tiny):
    """Return a working directory with a study of four seeds and at most two parts per batch."""
    tiny = replaced(
        tiny, ("batch_size = 8", "batch_size = 2"), ("steps_per_epoch = 2", "steps_per_epoch = 5")
    )
    text = tiny.replace('["not", "reverse"]', '["not"]').replace('"sa(heads=2, head_width=8)", ', "")
    (tmp_path / "tiny.toml").write_text(text.replace("[0, 1]", "[0, 1, 2, 3]"), encoding="utf-8")
    return tmp_path


def begin(folder, modes="", **environment):
    """Start the study in its own process, with these misbehaving seeds."""
    return subprocess.Popen(
        [sys.executable, "-m", "activemem", "study", "run", "tiny.toml", "--ray"],
        cwd=folder,
        env={
            **os.environ,
            "ACTIVEMEM_PLUGINS": str(PLUGIN),
            "ACTIVEMEM_TEST_MODES": modes,
            "ACTIVEMEM_TEST_FOLDER": str(folder),
            **environment,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def last_line(process):
    """Return the last printed line of a run whose store stays empty."""
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2, stderr
    return stderr.splitlines()[-1]


@pytest.mark.slow  # Ray waits, and starts each worker anew
def test_a_trial_that_kills_its_worker_has_its_own_reason_and_the_others_run(folder):
    process = begin(folder, "native", ACTIVEMEM_TIME_LIMIT_S="10")
    _, stderr = process.communicate(timeout=PATIENCE_S)
    frame = Store(folder / "results").trials().sort("seed")
    assert process.returncode == 1, stderr
    assert frame["status"].to_list() == ["failed", "done", "done", "done"]
    assert frame["reason"].str.split("\n").list.first().to_list() == [
        "time limit passed at epoch 1, in native code that did not return",
        None,
        None,
        None,
    ]


@pytest.mark.slow
def test_a_kernel_that_fails_is_one_trial_s_failure_and_another_worker_trains_the_others(folder):
    process = begin(
        folder, "well,kernel", ACTIVEMEM_CPUS=f"{cpus_here()}"
    )  # a worker, one trial after the other
    _, stderr = process.communicate(timeout=PATIENCE_S)
    frame = Store(folder / "results").trials().sort("seed")
    assert process.returncode == 1, stderr
    assert frame["status"].to_list() == ["done", "failed", "done", "done"]
    assert frame["reason"][1].startswith("RuntimeError at epoch 1: CUDA error: device-side assert triggered")


@pytest.mark.slow
def test_a_plug_in_that_a_worker_cannot_load_ends_the_run_with_its_reason(folder):
    (folder / "once.py").write_text(
        "from ray._private import worker\nassert not worker.global_worker.mode, 'not here'\n",
        encoding="utf-8",
    )
    told = last_line(begin(folder, ACTIVEMEM_PLUGINS=str(folder / "once.py")))
    assert "PluginError: once.py:2: AssertionError: not here. No trial" in told
    assert len(Store(folder / "results").trials()) == 0


@pytest.mark.slow
def test_more_cpus_than_there_are_end_the_run(folder):
    told = last_line(begin(folder, ACTIVEMEM_PLUGINS="", ACTIVEMEM_CPUS="4096"))
    assert "cpus: expected " in told
    assert "got 4096. No trial" in told
    assert "Continue: activemem study run tiny.toml" in told


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_one_signal_ends_a_run_whose_worker_hangs_in_native_code(folder, number):
    process = begin(folder, "native")
    wait_for(lambda: (folder / "native").exists() or process.poll() is not None)
    process.send_signal(number)
    asked = time.monotonic()
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert time.monotonic() - asked < PATIENCE_S
    assert process.returncode == 130
    assert stderr.endswith("Continue: activemem study run tiny.toml --ray\n")


@pytest.mark.slow
def test_trials_that_end_just_before_ctrl_c_are_told(folder):
    text = (folder / "tiny.toml").read_text(encoding="utf-8")
    (folder / "tiny.toml").write_text(text.replace("[0, 1, 2, 3]", str(list(range(40)))), encoding="utf-8")
    # one worker, which soon gets several trials at once
    process = begin(folder, 15 * "well," + "wait", ACTIVEMEM_CPUS=f"{cpus_here()}")
    wait_for(lambda: (folder / "waiting").exists() or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert sorted(Store(folder / "results").trials()["seed"]) == list(range(15)), stderr
    assert [seed for seed in range(15) if f"seed {seed}  " not in stderr] == [], stderr
    assert "15 trials ended" in stderr
