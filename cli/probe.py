"""`activemem probe`: what goes on inside of the trained models of a study."""

from __future__ import annotations

import shlex
from collections import Counter
from math import nan
from typing import TYPE_CHECKING, Annotated

import typer

from .figures import WIDTH, plural
from .options import Data, Results
from .streams import FAILED, INTERRUPTED, WRONG_INPUT, say, wrong_input
from .study import StudyName

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..engine.probes import Probed
    from ..storage import Store
    from ..studies.study import Study

app = typer.Typer(help="Measure what goes on inside of trained models.", no_args_is_help=True)

_NAMES_ROOM = WIDTH - len("  probed  Δ 0.500")
"""What the names of a trial may take of its line."""


@app.command()
def run(
    study: StudyName,
    *,
    sequences: Annotated[
        int, typer.Option("--sequences", min=1, metavar="N", help="Measure over the first N test sequences.")
    ] = 10_000,
    results: Results = None,
    data: Data = None,
) -> None:
    """Measure the memory of every trained recurrent encoder that a study has kept, and store it.

    Nothing is trained, and nothing measured twice. It needs `keep_weights = true` in the study; exits with 1
    if weights were not kept or cannot be used, and with 2 if no trial is done.
    """
    from ..engine.machine import Machine
    from ..storage import Store, StoreError
    from ..studies.faults import StudyError
    from .finding import as_last_run
    from .settings import SettingsError, settings

    with wrong_input(SettingsError, StoreError, StudyError, OSError):
        found = settings({"results": results, "data": data})
        store = Store(found.results)
        wanted = as_last_run(study, store)
        _check(wanted, store, _train_command(study, wanted, results))
        from ..engine.probes import probe_study  # loads torch

        machine = Machine(cpus=found.values.cpus, data=found.data)
        try:
            lacking = _tell(wanted, probe_study(wanted, store, machine, sequences=sequences))
        except KeyboardInterrupt:
            where = ["--results", results] if results else []
            again = shlex.join(["activemem", "probe", "run", study, "--sequences", str(sequences), *where])
            say(f"stopped; what was measured is stored. Continue: {again}")
            raise typer.Exit(INTERRUPTED) from None
    if lacking:
        raise typer.Exit(FAILED)


def _train_command(what: str, study: Study, results: str | None) -> str:
    """The command that trains a study as it was named."""
    words = ["activemem", "study", "run", what]
    words += [word for override in study.overrides for word in ("--set", override)]
    return shlex.join([*words, *(["--results", results] if results else [])])


def _check(study: Study, store: Store, train: str) -> None:
    """Say so, and end the command, where no trial is done, or there are no weights of those that are."""
    from ..studies.standing import own

    outcomes = own(study, store.trials())
    done = [trial for trial, status in outcomes.select("trial", "status").iter_rows() if status == "done"]
    if not done:
        say(f"study {study.name} has no trial that is done in {store.root}; train it first:\n  {train}")
        raise typer.Exit(WRONG_INPUT)
    if not any(store.weights_file(trial).exists() for trial in done):
        them, are = ("it", "is") if len(done) == 1 else ("them", "are")
        how = "" if study.keep_weights else "say keep_weights = true in [study] and "
        what = f"no weights of its {plural(len(done), 'trial')} that {are} done are in {store.root}"
        say(f"{study.name}: {what}; {how}train {them} again here:\n  {train}")
        raise typer.Exit(FAILED)


def _tell(study: Study, probes: Iterator[Probed]) -> bool:
    """Say what becomes of each trial, then of all; whether one could not be measured that should be."""
    from ..engine.probes import NO_ENCODER
    from .columns import Columns

    counts, lacking = Counter[str](), False
    columns = Columns(study.trials())
    for probed in probes:
        reason = probed.reason
        if not probed.metrics and reason is None:
            counts["stored before"] += 1
            continue
        status = "probed" if reason is None else "left"
        counts[status] += 1
        lacking |= reason not in (None, NO_ENCODER)
        columns.add([probed.trial])
        what = reason or f"Δ {probed.metrics.get('memory_change', nan):.3f}"
        say("  ".join([f"  {status:<6}", *columns.cells(probed.trial, _NAMES_ROOM), what]))
        for attention in probed.unclear:
            say(f"  {'':<6}  not compared with {attention}: several trials have it")
    taken = f"{counts['probed']} of {plural(counts.total(), 'trial')} probed"
    others = [f"{count} {what}" for what, count in counts.items() if what != "probed"]
    say(f"{study.name}: {' · '.join([taken, *others])}")
    return lacking
