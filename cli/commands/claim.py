"""`activemem claim`: tests of a study's claims against its results."""

from __future__ import annotations

from typing import Annotated

import typer

from ... import reporting
from ..json_output import print_json
from ..options import JsonOption, LastRunStudy, ResultsOption
from ..output import output_width, print_stdout

app = typer.Typer(help="Check the claims in a study file against its results.", no_args_is_help=True)

EXIT_REFUTED = 1
"""The exit status if a claim is refuted, or if no trial of the study has ended."""

EXIT_UNDECIDED = 3
"""The exit status if no claim is refuted, and one is not confirmed."""


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
    from ..machine_settings import open_results
    from ..missing_results import note_missing_results, note_other_settings, require_readable

    chosen = open_results(study, results, reads=("claim", "source"))
    if not chosen.study.claims:
        note = last_run_note(chosen, "claim", "check")
        raise reporting.ClaimError(f"study {chosen.study.name} has no claims: it has no [[claim]]{note}")
    now = chosen.compared
    found = reporting.select_claims(now.claims(), claim or ())
    has_no_results = note_missing_results(chosen)
    if as_json:
        sheet, overrides = chosen.study.source_sheet, chosen.study.document.overrides
        changes = changes_after_results(chosen.study, now.outcomes, chosen.store)
        page = {
            "overrides": overrides,
            "ours": sheet.names("ours"),
            "fitted": sheet.names("fitted"),
            "claims": found,
            "changes": changes,
        }
        print_json(study=chosen.study.name, **page)
    else:
        ids = {trial.id for trial in chosen.study.trials} | set(now.counted_outcomes["trial"])
        sentences = explanations(chosen.study, found, now.outcomes, chosen.store)
        sentences.append(provenance(ids, now.outcomes))
        print_stdout(claims_to_terminal(found, sentences, width=output_width()))
        note_other_settings(chosen, "claim", "check")
    require_readable(chosen)
    verdicts = {each.verdict for each in found}
    if has_no_results or reporting.Verdict.REFUTED in verdicts:
        raise typer.Exit(EXIT_REFUTED)
    if verdicts != {reporting.Verdict.CONFIRMED}:
        raise typer.Exit(EXIT_UNDECIDED)
