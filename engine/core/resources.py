"""What a machine gives to each trial: settings that change how long a study takes, never what it finds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """CPUs and GPUs (possibly a share of one) of a trial, its training limit in seconds, the Ray cluster.

    Without an address a cluster of this machine alone is started for the run. `data` is the folder of the
    corpora, on every machine of a cluster. Every `checkpoint_every_s` a trial is saved amid its epoch, by
    default only after it. Nodes on which trials cannot be trained end the run before it begins, unless
    `skip_unfit_nodes`. With `isolate` a local run trains in a process of its own, as it does where there is a
    `memory_limit`, of bytes that a worker's process may occupy.
    """

    cpus: float = 1.0
    gpus: float = 0.0
    time_limit_s: float | None = None
    checkpoint_every_s: float | None = None
    address: str | None = None
    data: Path = Path("data")
    skip_unfit_nodes: bool = False
    isolate: bool = False
    memory_limit: int | None = None

    @property
    def device(self) -> Literal["cuda", "cpu"]:
        """The kind of device that trains."""
        return "cuda" if self.gpus else "cpu"

    @property
    def threads(self) -> int:
        """The threads of a trial; its numbers are equal bit for bit only for an equal number of threads."""
        return max(1, int(self.cpus))


ONE_CPU = Machine()
"""What a trial gets where nothing else is said."""
