"""Start forked drivers of shared.toml on one store, which share one import of torch.

Usage: forked_drivers.py [STORE], in a folder with shared.toml. LEASE_S in the environment is the length of
leases. The program reads lines with a name, or with a name and a share such as 3/4. For each line it starts a
process that runs the study or this share and writes the events to NAME.log, and it prints the id of the
process. At the end of the input it waits for all processes, and prints the names of those that succeeded.
"""

import os
import sys
import traceback
from pathlib import Path

import torch
import torch._dynamo  # which torch's optimisers import: once, before the forks

from activemem import load_study, run_study
from activemem.engine import Event, Machine
from activemem.storage import Store, leases
from activemem.studies.planning.trials_to_run import select_shard


def log(event: Event) -> None:
    """Write a line for an event of a trial: kind, trial, epoch."""
    if event.kind in ("started", "epoch", "ended"):
        os.write(1, f"{event.kind} {event.run.trial} {event.run.epoch}\n".encode())


def drive(name: str, share: str) -> int:
    """Start a driver of all trials or a share of them; return its process id."""
    if child := os.fork():
        return child
    try:
        os.dup2(os.open(f"{name}.log", os.O_WRONLY | os.O_CREAT), 1)
        study = load_study(Path("shared.toml").read_text(encoding="utf-8"))
        trials = select_shard(study, share) if share else None
        store = Store(sys.argv[1] if len(sys.argv) > 1 else "results")
        leases.LEASE_S = float(os.environ.get("LEASE_S", leases.LEASE_S))
        run_study(study, store, Machine(), log, local=True, trial_ids=trials)
    except BaseException:  # noqa: BLE001  told to the test
        os.write(1, traceback.format_exc().encode())
        os._exit(1)
    os._exit(0)


def main() -> None:
    torch.set_num_threads(1)
    names: dict[int, str] = {}
    for line in sys.stdin:
        name, _, share = line.strip().partition(" ")
        process = drive(name, share)
        names[process] = name
        print(process, flush=True)  # noqa: T201  read by the test
    well = [name for process, name in names.items() if os.waitpid(process, 0)[1] == 0]
    print(*well)  # noqa: T201  as above


main()
