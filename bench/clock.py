"""The clock of a benchmark: CPU time on a CPU; on a GPU, wall time until its work has ended."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

CPU = torch.device("cpu")


def make_clock(device: torch.device) -> Callable[[], float]:
    """Return a clock in seconds."""
    if device.type == "cpu":
        return time.process_time

    def now() -> float:
        torch.cuda.synchronize(device)
        return time.perf_counter()

    return now
