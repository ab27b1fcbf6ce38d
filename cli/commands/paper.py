"""`activemem paper`: our results for the tables, claims and figures of a paper."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from ..options import JsonOption, ResultsOption
from ..output import output_width, print_json, print_stdout

app = typer.Typer(help="Compare the results of studies with a paper.", no_args_is_help=True)


@app.command()
def show(
    paper: Annotated[
        str | None, typer.Argument(metavar="PAPER", help="The name of a paper, unless --all.")
    ] = None,
    *,
    all_papers: Annotated[bool, typer.Option("--all", help="Show all papers.")] = False,
    tables: Annotated[
        bool,
        typer.Option(
            "--tables/--no-tables",
            help="Print the paper's tables, with our numbers next to the printed ones.",
        ),
    ] = True,
    sheet_format: Annotated[
        Literal["rich", "markdown"],
        typer.Option("--format", help="The output format; rich is for terminals."),
    ] = "rich",
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show each table, claim and figure of a paper with its studies, verdicts and missing trials.

    Verdicts at the paper's own size and verdicts of smaller models are listed separately. Missing trials are
    shown with their cost.
    """
    from ...reporting.paper import paper_sheet, papers
    from ..machine_settings import load_settings
    from ..views.paper import format_sheet, sheet_to_markdown

    if (paper is None) != all_papers:
        raise typer.BadParameter(f"expected a paper or --all; papers: {', '.join(papers())}")
    store = load_settings({"results": results}).store
    sheets = [paper_sheet(each, store) for each in (papers() if paper is None else (paper,))]
    if as_json:
        from ..pages import PaperShowPage

        print_json(PaperShowPage.model_validate({"papers": sheets}))
    elif sheet_format == "markdown":
        print_stdout("\n".join(sheet_to_markdown(each, tables=tables) for each in sheets))
    else:
        print_stdout("\n".join(format_sheet(each, output_width(), tables=tables) for each in sheets))
