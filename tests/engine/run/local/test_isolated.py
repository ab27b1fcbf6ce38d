"""In a process of its own a trial may abort, hang or eat memory; the study goes on, nothing outlives it."""

import os
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from activemem.engine.core.resources import Machine
from activemem.engine.run.driver import run_study
from activemem.storage import Store
from activemem.studies.study import load_study

from ....forked_commands import start_command
from ....waiting import wait_for
from ..search.test_optuna_search import SEARCH

PLUGIN = Path(__file__).parents[1] / "misbehaving.py"
PATIENCE_S = 300


@pytest.fixture
def folder(tmp_path, tiny):
    """A working directory with a study of four seeds, whose batches have no parts."""
    tiny = tiny.replace("batch_size = 8", "batch_size = 1")
    text = tiny.replace('["not", "reverse"]', '["not"]').replace('"sa(heads=2, head_width=8)", ', "")
    (tmp_path / "tiny.toml").write_text(text.replace("[0, 1]", "[0, 1, 2, 3]"), encoding="utf-8")
    return tmp_path


def begin(folder, modes, **environment):
    """The study in a process of its own, whose seeds misbehave in these ways."""
    return start_command(
        *("study", "run", "tiny.toml", "--local", "--isolate"),
        cwd=folder,
        environment={
            "ACTIVEMEM_PLUGINS": str(PLUGIN),
            "ACTIVEMEM_TEST_MODES": modes,
            "ACTIVEMEM_TEST_FOLDER": str(folder),
            **environment,
        },
    )


def stuck(folder):
    """A study whose first trial hangs in native code, and the processes under it."""
    process = begin(folder, "native")
    wait_for(lambda: (folder / "native").exists() or process.poll() is not None)
    return process, psutil.Process(process.pid).children(recursive=True)


TIME_LIMIT_S = "10"  # for memory to be eaten before, on a busy machine too
LATE = f"time limit of {TIME_LIMIT_S} s passed at epoch 1, in native code that did not come back"
LARGE = "memory limit of 1.5 GB passed at epoch 1"


def reasons_of(folder, modes):
    """Run the study within limits; the lines of the reason of each trial, of which the last is done."""
    process = begin(folder, modes, ACTIVEMEM_TIME_LIMIT_S=TIME_LIMIT_S, ACTIVEMEM_MEMORY_LIMIT="1.5GB")
    _, stderr = process.communicate(timeout=PATIENCE_S)
    frame = Store(folder / "results").trials().sort("seed")
    assert process.returncode == 1, stderr
    assert frame["status"].to_list() == ["failed"] * (len(frame) - 1) + ["done"]
    return [reason.splitlines() for reason in frame["reason"].drop_nulls()]


def assert_traced(reason, name):
    assert any("misbehaving.py" in line and line.endswith(f"in {name}") for line in reason)


@pytest.mark.heavy
def test_a_trial_that_passes_its_limits_has_its_own_reason_and_the_others_run(folder):
    study = folder / "tiny.toml"
    study.write_text(study.read_text(encoding="utf-8").replace("[0, 1, 2, 3]", "[0, 1, 2]"), encoding="utf-8")
    late, large = reasons_of(folder, "native,eat")
    assert (late[0], large) == (LATE, [LARGE])
    assert_traced(late, "native")


@pytest.mark.heavy
def test_behind_a_kernel_that_fails_another_worker_goes_on(folder):
    process = begin(folder, "kernel,well,kernel")
    _, stderr = process.communicate(timeout=PATIENCE_S)
    frame = Store(folder / "results").trials().sort("seed")
    assert (process.returncode, frame["status"].to_list()) == (1, ["failed", "done"] * 2), stderr


@pytest.mark.slow  # six workers, each of which imports torch
def test_a_trial_that_kills_its_process_has_its_own_reason_and_the_others_run(folder):
    aborted, late, large = reasons_of(folder, "abort,native,eat")
    assert aborted[0] == "the worker died 3 times at epoch 1, the last time by: aborted"
    assert (late[0], large) == (LATE, [LARGE])
    assert_traced(aborted, "misbehave")
    assert_traced(late, "native")


@pytest.mark.heavy
def test_ctrl_c_ends_a_worker_that_hangs_within_seconds(folder):
    process, family = stuck(folder)
    os.killpg(process.pid, signal.SIGINT)
    asked = time.monotonic()
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert time.monotonic() - asked < 30
    assert process.returncode == 130
    assert stderr.endswith("Continue: activemem study run tiny.toml --local --isolate\n")
    assert "Traceback" not in stderr
    assert psutil.wait_procs(family, timeout=PATIENCE_S)[1] == []


@pytest.mark.heavy
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills a process with its parent")
def test_no_worker_outlives_a_run_that_is_killed(folder):
    process, family = stuck(folder)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert family
    assert psutil.wait_procs(family, timeout=PATIENCE_S)[1] == []


@pytest.mark.slow
def test_a_plug_in_that_a_worker_cannot_load_stops_the_study_with_its_reason(folder):
    (folder / "once.py").write_text(
        "from multiprocessing import parent_process\nassert parent_process() is None, 'not here'\n",
        encoding="utf-8",
    )
    process = begin(folder, "", ACTIVEMEM_PLUGINS=str(folder / "once.py"))
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, len(stderr.splitlines())) == (2, 1), stderr
    assert "a worker cannot begin: once.py:2: AssertionError: not here" in stderr
    assert len(Store(folder / "results").trials()) == 0


@pytest.mark.slow
def test_a_search_gives_up_the_same_points_in_a_process_of_its_own(tmp_path):
    overrides = ["search.scheduler=asha", "search.metric=loss", "search.direction=min"]

    def outcome(machine, name):
        store = Store(tmp_path / name)
        run_study(load_study(SEARCH, overrides), store, machine, local=True)
        return store.trials().sort("trial").select("trial", "attempt", "status", "reason", "epochs").rows()

    isolated = outcome(Machine(isolate=True), "isolated")
    assert isolated == outcome(Machine(), "here")
    assert {status for _, _, status, _, _ in isolated} == {"done", "pruned"}
