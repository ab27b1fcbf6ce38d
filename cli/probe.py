"""`activemem probe`: what goes on inside of the trained models of a study."""

from __future__ import annotations

import shlex
from collections import Counter
from math import nan
from typing import TYPE_CHECKING, Annotated

import typer

from .figures import WIDTH, plural
from .options import Data, Results
from .streams import FAILED, INTERRUPTED, say, wrong_input
from .study import StudyName

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..engine.probes import Probed
    from ..studies.study import Study

app = typer.Typer(help="Measure what goes on inside of trained models.", no_args_is_help=True)

_LEVELS_ROOM = WIDTH - len("  probed  seed 1  Δ 0.500")
"""What the levels of a trial may take of its line."""


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
    if weights were not kept or cannot be used.
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


def _tell(study: Study, probes: Iterator[Probed]) -> bool:
    """Say what becomes of each trial, then of all; whether one could not be measured that should be."""
    from ..engine.probes import NO_ENCODER
    from .drawing import named, widths

    counts, lacking = Counter[str](), False
    wide = widths(study.trials(), room=_LEVELS_ROOM)
    for probed in probes:
        reason = probed.reason
        if not probed.metrics and reason is None:
            counts["stored before"] += 1
            continue
        status = "probed" if reason is None else "left"
        counts[status] += 1
        lacking |= reason not in (None, NO_ENCODER)
        wide = widths([probed.trial], wide, room=_LEVELS_ROOM)
        what = reason or f"Δ {probed.metrics.get('memory_change', nan):.3f}"
        say("  ".join([f"  {status:<6}", *named(probed.trial, wide), what]))
        for attention in probed.unclear:
            say(f"  {'':<6}  not compared with {attention}: several trials have it")
    taken = f"{counts['probed']} of {plural(counts.total(), 'trial')} probed"
    others = [f"{count} {what}" for what, count in counts.items() if what != "probed"]
    say(f"{study.name}: {' · '.join([taken, *others])}")
    return lacking
