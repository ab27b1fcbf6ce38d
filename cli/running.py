"""A study carried out: shown while it runs, summed up when it ends, with the command that goes on with it."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING

from ..engine.machine import Machine
from ..storage import Store
from ..studies.leaders import leaders
from ..studies.standing import standing
from ..studies.study import Study
from .display import shown
from .figures import WIDTH, duration, plural
from .leaders import lines
from .progress import Progress
from .settings import Settings
from .standing import failures
from .streams import say

if TYPE_CHECKING:
    from ..engine.driver import Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the command line asks for; `what` is the study as it was named there.

    `only` are the words that say which part of it is to run, `trials` the ids that they mean, None for all.
    """

    study: Study
    what: str
    local: bool
    only: tuple[str, ...]
    trials: frozenset[str] | None
    max_trials: int | None
    retry_failed: bool
    results: str | None
    address: str | None

    @property
    def command(self) -> str:
        """The command that goes on where this one was stopped: the same again."""
        words = ["activemem", "study", "run", self.what]
        words += [word for override in self.study.overrides for word in ("--set", override)]
        words += ["--local"] if self.local else []
        words += [word for each in self.only for word in ("--only", each)]
        words += ["--max-trials", str(self.max_trials)] if self.max_trials else []
        words += ["--retry-failed"] if self.retry_failed else []
        return shlex.join([*words, *self._where, *(["--address", self.address] if self.address else [])])

    @property
    def table_command(self) -> str:
        """The command that shows what was found."""
        return shlex.join(["activemem", "table", "render", self.study.name, *self._where])

    @property
    def _where(self) -> list[str]:
        return ["--results", self.results] if self.results else []


def carry_out(order: Order, store: Store, found: Settings) -> Summary | None:
    """Run a study and tell what became of it; None if it was interrupted without order."""
    from ..engine.driver import run_study  # loads torch

    started, values = time.monotonic(), found.values
    machine = Machine(
        cpus=values.cpus,
        gpus=values.gpus,
        time_limit_s=values.time_limit_s,
        address=values.address,
        data=found.data.resolve(),  # workers have a working directory of their own
    )
    try:
        with shown(order.study.name, _progress(order, store)) as listener:
            summary = run_study(
                order.study,
                store,
                machine,
                listener,
                local=order.local,
                max_trials=order.max_trials,
                retry_failed=order.retry_failed,
                only=order.trials,
            )
    except KeyboardInterrupt:
        say(f"stopped at once; the epochs before are stored. Continue: {order.command}")
        return None
    _sum_up(order, summary, store, time.monotonic() - started)
    return summary


def _progress(order: Order, store: Store) -> Progress:
    """What is known before the first event; the trials of a search are not, only how many will come."""
    before, to_come = standing(order.study, store), 0
    if order.study.search is not None:
        to_come = before.left if order.max_trials is None else min(before.left, order.max_trials)
    return Progress(total=before.total, held=before.held, to_come=to_come)


def _sum_up(order: Order, summary: Summary, store: Store, seconds: float) -> None:
    now = standing(order.study, store)
    whole = f"{order.study.name}: {now.words()} · {plural(summary.ran, 'trial')} ended in {duration(seconds)}"
    for line in (*wrap(whole, WIDTH, subsequent_indent="  "), *failures(now)):
        say(line)
    for trouble in summary.given_up:
        say(f"  given up   {trouble}")
    if summary.stopped:
        say(f"stopped; all epochs so far are stored. Continue: {order.command}")
        return
    for line in lines(order.study, leaders(order.study, store.trials())):
        say(line)
    if now.held and order.study.tables:
        say(f"see: {order.table_command}")
