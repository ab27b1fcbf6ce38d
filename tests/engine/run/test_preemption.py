"""A run preempted during a long epoch saves a checkpoint, and resumes with the same rows."""

import signal

import polars as pl
import pytest
import torch

from activemem.storage import Store

from ...forked_commands import start_command
from ...waiting import wait_for
from ..conftest import TINY
from .ray_nodes import ENVIRONMENT, head, worker

STEPS = 600
LONG = ("--set", "train.epochs=2", "--set", f"train.steps_per_epoch={STEPS}")
LONGER = ("--set", "train.epochs=2", "--set", f"train.steps_per_epoch={20 * STEPS}")
ONE = ("--only", "mixer=conv(k=3)", "--only", "task=not", "--only", "seed=0")


def begin(folder, results, *options, long=LONG, **environment):
    """Start the study in its own process, with one trial of two epochs of some seconds."""
    return start_command(
        *("study", "run", "tiny.toml", "--results", results, *long, *ONE, *options),
        cwd=folder,
        environment={**ENVIRONMENT, **environment},
    )


def finish(process):
    """Return the exit status and standard error of a run."""
    _, stderr = process.communicate(timeout=600)
    return process.returncode, stderr


def saved(folder):
    """Return the saved trial's total steps, and its steps in the current epoch."""
    (path,) = folder.glob("checkpoints/*/state.pt")
    state = torch.load(path, weights_only=True)["state"]
    return state["progress"][1], state["epoch"]["taken"]


def rows(folder):
    """Return the rows of a store without times and attempts."""
    store = Store(folder)
    metrics = store.metrics().filter(pl.col("name") != "tokens_per_s").drop("attempt")
    return metrics.rows(), store.trials().select("trial", "status", "epochs", "steps", "flops").rows()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the rows of an undisturbed run."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "tiny.toml").write_text(TINY, encoding="utf-8")
    assert finish(begin(folder, "whole", "--local"))[0] == 0
    return rows(folder / "whole")


@pytest.mark.slow  # two programs with Ray; a local run is told as well, below
def test_workers_of_ray_are_notified_when_the_driver_gets_sigterm(tmp_path, tiny, whole):
    (tmp_path / "tiny.toml").write_text(tiny, encoding="utf-8")
    first = begin(tmp_path, "cut", "--ray", ACTIVEMEM_CHECKPOINT_EVERY="0.05")
    wait_for(lambda: any((tmp_path / "cut").glob("checkpoints/*/state.pt")))
    before = saved(tmp_path / "cut")
    first.send_signal(signal.SIGTERM)
    status, told = finish(first)
    assert (status, told.splitlines()[-1].startswith("stopped; all steps ")) == (130, True)
    assert before < saved(tmp_path / "cut") < (2 * STEPS, STEPS)
    lines = next((tmp_path / "cut").glob("checkpoints/*/begun")).read_text(encoding="utf-8").splitlines()
    assert lines[-1] == "stopped"
    assert finish(begin(tmp_path, "cut", "--local"))[0] == 0
    assert rows(tmp_path / "cut") == whole


@pytest.mark.slow  # a node is told only seconds later, so that the trial has to take a minute
def test_a_node_that_is_taken_away_saves_its_trial_and_another_continues_with_it(tmp_path, tiny):
    (tmp_path / "tiny.toml").write_text(tiny, encoding="utf-8")
    begun = tmp_path / "cut" / "checkpoints"

    def starts():
        return [line for path in begun.glob("*/begun") for line in path.read_text().splitlines()[1:]]

    with head() as address, worker(address, 2) as node:
        study = begin(tmp_path, "cut", "--address", address, long=LONGER)
        wait_for(lambda: any(starts()))
        with worker(address, 3):
            node.terminate()
            wait_for(lambda: len(starts()) > 1)
            assert starts()[-1].rpartition(" ")[2].startswith(("0+", "1+"))
            assert finish(study)[0] == 0
    assert finish(begin(tmp_path, "whole", "--local", long=LONGER))[0] == 0
    assert rows(tmp_path / "cut") == rows(tmp_path / "whole")


@pytest.mark.heavy
def test_a_local_run_that_gets_sigterm_within_an_epoch_resumes_from_there(tmp_path, tiny, whole):
    (tmp_path / "tiny.toml").write_text(tiny, encoding="utf-8")
    first = begin(tmp_path, "cut", "--local", ACTIVEMEM_CHECKPOINT_EVERY="0.05")
    wait_for(lambda: any((tmp_path / "cut").glob("checkpoints/*/state.pt")))
    first.send_signal(signal.SIGTERM)
    status, told = finish(first)
    assert (status, told.splitlines()[-1].startswith("stopped; all steps ")) == (130, True)
    steps, taken = saved(tmp_path / "cut")
    assert 0 < taken == steps < STEPS
    assert finish(begin(tmp_path, "cut", "--local"))[0] == 0
    assert rows(tmp_path / "cut") == whole
