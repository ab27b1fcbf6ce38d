"""One attempt at a trial as far as it has come: what an event, a checkpoint and a row have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

RunStatus = Literal["running", "paused", "done", "failed", "pruned", "elsewhere"]
"""The state of an attempt. "elsewhere" means that another process has the trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One attempt at a trial.

    - `trial` is the trial's id, and `attempt` counts its attempts from 0.
    - `reason` says why an ended trial is not "done".
    - `metrics` are those of the last epoch, or the final ones of an ended trial.
    - `epoch` counts finished epochs, and `step` all optimiser steps. While a trial trains, `step` may be
      ahead of its last epoch.
    - `flops` and `seconds` count only the training, not the evaluation.
    - `peak_mib` is the peak memory of the `device`, and `gpus` the share of a GPU, 0 on a CPU.
    - `continued_from` is the trial with fewer epochs or other tests that this one continues, after
      `continued_after` epochs.
    - `deaths` counts the processes of the trial that have died after an earlier start at the same step.
    - `host` and `pid` identify the process that trains a trial elsewhere, if known.
    """

    trial: str = ""
    attempt: int = 0
    status: RunStatus = "running"
    reason: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    epoch: int = 0
    step: int = 0
    parameters: int = 0
    flops: float = 0.0
    seconds: float = 0.0
    peak_mib: float = 0.0
    device: str = ""
    gpus: float | None = None
    torch_version: str | None = None
    cuda_version: str | None = None
    python_version: str | None = None
    optuna_version: str | None = None
    arithmetic: int | None = None
    continued_from: str | None = None
    continued_after: int | None = None
    deaths: int = 0
    host: str = ""
    pid: int = 0


NO_RUN = Run()
"""Stands where no trial is meant."""
