"""A run that is preempted amid a long epoch is saved there, and goes on to the same rows."""

import os
import signal
import subprocess
import sys

import polars as pl
import torch

from activemem.storage import Store

from .test_crashes import wait_for

LONG = ("--set", "train.epochs=2", "--set", "train.steps_per_epoch=600")
ONE = ("--only", "mixer=conv(k=3)", "--only", "task=not", "--only", "seed=0")


def begin(folder, results, *options):
    """The study in a process of its own; one trial of it, of two epochs that take seconds each."""
    words = [sys.executable, "-m", "activemem", "study", "run", "tiny.toml", "--results", results]
    return subprocess.Popen(
        [*words, *LONG, *ONE, *options],
        cwd=folder,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def finish(process):
    """The exit status and standard error of a run that ends by itself."""
    _, stderr = process.communicate(timeout=300)
    return process.returncode, stderr


def saved(folder):
    """The steps of the one trial that is saved, and those of its epoch under way."""
    (path,) = folder.glob("checkpoints/*/state.pt")
    state = torch.load(path, weights_only=True)["state"]
    return state["progress"][1], state["epoch"]["taken"]


def rows(folder):
    """What a store says, but for times and attempts."""
    store = Store(folder)
    metrics = store.metrics().filter(pl.col("name") != "tokens_per_s").drop("attempt")
    return metrics.rows(), store.trials().select("trial", "status", "epochs", "steps", "flops").rows()


def test_a_local_run_that_gets_sigterm_amid_an_epoch_goes_on_from_there(tmp_path, tiny):
    (tmp_path / "tiny.toml").write_text(tiny, encoding="utf-8")
    first = begin(tmp_path, "cut", "--local", "--checkpoint-every", "0.05")
    wait_for(lambda: any((tmp_path / "cut").glob("checkpoints/*/state.pt")))
    first.send_signal(signal.SIGTERM)
    status, told = finish(first)
    assert (status, told.splitlines()[-1].startswith("stopped; all steps so far are stored. ")) == (130, True)
    steps, taken = saved(tmp_path / "cut")
    assert 0 < taken == steps < 600
    assert finish(begin(tmp_path, "cut", "--local"))[0] == 0
    assert finish(begin(tmp_path, "whole", "--local"))[0] == 0
    assert rows(tmp_path / "cut") == rows(tmp_path / "whole")
