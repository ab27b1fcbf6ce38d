"""`activemem claim`: whether what a paper says, or you, holds in a study's results."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .figures import WIDTH
from .options import AsJson, Results
from .streams import give, give_json, wrong_input

if TYPE_CHECKING:
    from ..studies.claims.verdicts import Checked, Finding

app = typer.Typer(help="Hold the claims of a paper against a study's results.", no_args_is_help=True)

REFUTED = 1
"""Exit status when a claim is refuted."""


@app.command()
def check(
    study: Annotated[
        str | None, typer.Argument(metavar="[STUDY]", help="A study by its name or file; else the last one.")
    ] = None,
    *,
    results: Results = None,
    as_json: AsJson = False,
) -> None:
    """Tell of each claim whether the results confirm it, refute it, or leave it undecided.

    A name means the study as it was last run, with its overrides; a path means the file. Exits with 1 if a
    claim is refuted.
    """
    from ..storage import Store, StoreError
    from ..studies.claims.checking import check as checked
    from ..studies.claims.checking import needs_metrics
    from ..studies.claims.verdicts import ClaimError, Verdict
    from ..studies.faults import StudyError
    from ..studies.recall import as_last_run
    from ..studies.tables import provenance
    from ..studies.wanted import wanted
    from .settings import SettingsError, settings

    with wrong_input(SettingsError, StoreError, StudyError, ClaimError, OSError):
        store = Store(settings({"results": results}).results)
        chosen = as_last_run(study, store)
        if not chosen.claims:
            raise ClaimError(f"study {chosen.name} makes no claim: it has no [[claim]]")
        ids = [trial.id for trial in chosen.trials()]
        outcomes = store.trials(wanted([chosen]))
        found = checked(chosen, outcomes, store.metrics(ids) if needs_metrics(chosen) else None)
    if as_json:
        give_json({"study": chosen.name, "claims": [_data(each) for each in found]})
    else:
        _tell(found, provenance(ids, outcomes))
    if any(each.verdict is Verdict.REFUTED for each in found):
        raise typer.Exit(REFUTED)


def _tell(found: tuple[Checked, ...], provenance: str) -> None:
    """Print the claims for eyes."""
    from ..studies.render.claims import claims_to_terminal

    width = shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH
    give(claims_to_terminal(found, provenance, width=width))


def _data(checked: Checked) -> dict[str, Any]:
    """A claim for a program.

    `level` is what was asked for, `interval_level` what Hochberg's procedure made of it: at that level all
    intervals are drawn. `deciding` is the place in `comparisons` of the one that the verdict hangs on.
    """
    spec = checked.spec
    return {
        "name": spec.name,
        "holds": " ".join(spec.holds.split()),
        "source": spec.source,
        "verdict": checked.verdict,
        "test": spec.test,
        "level": spec.level,
        "interval_level": checked.level,
        "seeds": checked.seeds,
        "needed": checked.needed,
        "deciding": checked.findings.index(checked.deciding),
        "comparisons": [_finding(each) for each in checked.findings],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    """A comparison for a program; `missing` has a sentence for each gap."""
    return {
        "text": finding.text,
        "verdict": finding.verdict,
        "effect": finding.effect,
        "interval": finding.interval,
        "p": finding.p,
        "n": finding.n,
        "needed": finding.needed,
        "missing": [str(gap) for gap in finding.gaps],
    }
