"""`activemem study propose` and `activemem study tell`: a search beside a program that searches too."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from ..options import OverridesOption, ResultsOption
from ..output import EXIT_FAILED, print_json_line, print_stderr
from .study import StudyFile, app


@app.command()
def propose(
    study: StudyFile,
    *,
    count: Annotated[
        int, typer.Option("-n", "--count", min=1, metavar="N", help="Print at most so many points.")
    ] = 1,
    overrides: OverridesOption = None,
    results: ResultsOption = None,
) -> None:
    """Print the points that a search would try next, a line of JSON each; nothing is trained or stored.

    They are those that its sampler chooses by what the store has now, and that nobody has begun. A run
    chooses the first of them, too; others only if `study tell` hands them in.
    """
    from ...engine.run.search.proposals import SearchDesk
    from ...studies.study import load_study
    from ..machine_settings import load_settings
    from ..pages import ProposalLine

    found = load_study(study, overrides or ())
    proposals = SearchDesk(found, load_settings({"results": results}).store).propose(count)
    for proposal in proposals:
        print_json_line(ProposalLine.of(proposal))
    if len(proposals) < count:
        print_stderr(f"{found.name} has no more points: all are tried or begun, or the space has no others")


@app.command()
def tell(study: StudyFile, *, overrides: OverridesOption = None, results: ResultsOption = None) -> None:
    """Hand in points of a search, a line of JSON each on standard input, and print a line of JSON for each.

    A line is {"values": {"k": 16}}, {"recipe": "…"} or what `study propose` prints. It is "accepted" for the
    next study run, "waiting" if that is so already, "known" with its results, or "refused" with the reasons.
    Results are taken from trainings alone: a line that brings one is refused. Ends with status 1 if one was.
    """
    from ...engine.run.search.proposals import SearchDesk
    from ...studies.study import load_study
    from ..machine_settings import load_settings
    from ..pages import AnswerLine

    desk = SearchDesk(load_study(study, overrides or ()), load_settings({"results": results}).store)
    refused = False
    for number, line in _lines():
        answer = desk.hand_in_text(line)
        print_json_line(AnswerLine.of(number, answer))
        refused |= bool(answer.faults)
    if refused:
        raise typer.Exit(EXIT_FAILED)


def _lines() -> Iterator[tuple[int, str]]:
    for number, line in enumerate(sys.stdin, start=1):
        if line.strip():
            yield number, line
