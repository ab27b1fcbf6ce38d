"""`activemem claim`: tests of a study's claims against its results."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from ... import reporting
from ...studies.text.units import plural
from ..json_output import print_json
from ..options import JsonOption, LastRunStudy, ResultsOption
from ..output import output_width, print_stdout

if TYPE_CHECKING:
    from ...studies.evidence import Verification

app = typer.Typer(help="Check the claims in a study file against its results.", no_args_is_help=True)

EXIT_REFUTED = 1
"""The exit status if a claim is refuted, or if no trial of the study has ended."""

EXIT_UNDECIDED = 3
"""The exit status if no claim is refuted, and one is not confirmed."""


@app.command()
def verify(
    folder: Annotated[
        str | None,
        typer.Argument(metavar="[FOLDER]", help="The store or a copy of it (default: as configured)."),
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Check that claims, trials and values of a store still have the seals of their studies.

    `study run` seals a study with claims when it ends. The seal covers what the claims test, when a run first
    recorded them, and every ended trial of their cells with its values, whichever study trained it. Nothing
    but the folder is read. This shows consistency, not honesty: whoever can write the folder can make another
    seal.

    Exits with 1 if anything was changed, dropped or added since.
    """
    from ... import cli
    from ...storage import StoreError
    from ...studies.evidence import verify_seals

    store = cli.load_settings({"results": folder}).store
    found = verify_seals(store)
    if not found:
        raise StoreError(
            f"{store.absolute_place} has no seal: `activemem study run` seals a study with claims at its end"
        )
    if as_json:
        print_json(seals=found)
    else:
        print_stdout("\n".join(line for each in found for line in _verification_lines(each, output_width())))
    if any(each.changes for each in found):
        raise typer.Exit(EXIT_REFUTED)


def _verification_lines(found: Verification, width: int) -> Iterator[str]:
    from ...studies.schema.factors import one_line

    what = f"seal {found.seal} of {plural(found.claims, 'claim')} and {plural(found.trials, 'trial')}"
    how = "changed since its" if found.changes else "unchanged ·"
    yield from wrap(f"{found.study}: {how} {what}", width, subsequent_indent="  ")
    for each in found.changes:
        yield from wrap(one_line(each), width, initial_indent="  ", subsequent_indent="    ")


@app.command()
def check(
    study: LastRunStudy = None,
    *,
    claim: Annotated[
        list[str] | None,
        typer.Option("--claim", metavar="NAME", help="Check only this claim. Repeat it for more claims."),
    ] = None,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check whether the results confirm or refute each claim, or leave it undecided.

    If STUDY is a name, the command uses this study as it last ran, with its --set overrides. If STUDY is a
    path, it uses the file as it is now.

    Exits with 0 if all of these claims are confirmed, and with 3 if none is refuted, but one is not
    confirmed, or only with a setting that was fitted to it.
    Exits with 1 if one is refuted, if no trial has ended, or if a file of the study may not be read.
    """
    from ...reporting.claims.terminal import changes_after_results, claims_to_terminal, explanations
    from ...reporting.outcomes import provenance
    from ...reporting.results import last_run_note
    from ...studies.evidence import find_evidence
    from ..machine_settings import open_results
    from ..missing_results import note_missing_results, note_other_versions, require_readable

    chosen = open_results(study, results, reads=("claim", "source"))
    if not chosen.study.claims:
        note = last_run_note(chosen, "claim", "check")
        raise reporting.ClaimError(f"study {chosen.study.name} has no claims: it has no [[claim]]{note}")
    now = chosen.compared
    found = reporting.select_claims(now.claims(), claim or ())
    has_no_results = note_missing_results(chosen)
    if as_json:
        sheet, evidence = chosen.study.source_sheet, find_evidence(chosen.study, chosen.store)
        page = {
            "overrides": chosen.study.document.overrides,
            "ours": sheet.names("ours"),
            "fitted": sheet.names("fitted"),
            "claims": found,
            "changes": changes_after_results(chosen.study, chosen.store),
            "evidence": evidence,
            "seal": evidence.seal if evidence else "",
        }
        print_json(study=chosen.study.name, **page)
    else:
        ids = {trial.id for trial in chosen.study.trials} | set(now.counted_outcomes["trial"])
        sentences = explanations(chosen.study, found, now.outcomes, chosen.store)
        sentences.append(provenance(ids, now.outcomes))
        print_stdout(claims_to_terminal(found, sentences, width=output_width()))
        note_other_versions(chosen, where_missing=True)
    require_readable(chosen)
    verdicts = {each.verdict for each in found}
    if has_no_results or reporting.Verdict.REFUTED in verdicts:
        raise typer.Exit(EXIT_REFUTED)
    if verdicts != {reporting.Verdict.CONFIRMED}:
        raise typer.Exit(EXIT_UNDECIDED)
