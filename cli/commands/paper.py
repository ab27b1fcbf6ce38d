"""`activemem paper`: results for a published paper, or for a paper of your own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ... import cli, reporting
from ..json_output import print_json
from ..options import JsonOption, ResultsOption
from ..output import EXIT_FAILED, output_width, print_stderr, print_stdout, waiting

if TYPE_CHECKING:
    from ...reporting.manuscript.paper_file import Manuscript

app = typer.Typer(help="Compare results with a paper, or write your own paper.", no_args_is_help=True)


@app.command()
def show(
    paper: Annotated[
        str | None,
        typer.Argument(
            metavar="PAPER",
            help="The name of a paper, or a CSV file of published numbers (omit it with --all).",
        ),
    ] = None,
    *,
    all_papers: Annotated[bool, typer.Option("--all", help="Show all papers.")] = False,
    tables: Annotated[
        bool,
        typer.Option(
            "--tables/--no-tables",
            help="Print the paper's tables, with measured numbers next to the published ones.",
        ),
    ] = True,
    sheet_format: Annotated[
        Literal["rich", "markdown"],
        typer.Option("--format", help="The output format; rich is for terminals."),
    ] = "rich",
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the results for each table, claim and figure of a published paper.

    For each of them, the command lists the studies, the verdicts, and the missing trials with their cost.
    Verdicts for models of the paper's size and for smaller models are listed separately.
    """
    from ...reporting.paper import paper_sheet, papers
    from ...studies.last_run import other_results
    from ...studies.study import shipped_studies
    from ..views.paper import format_sheet, sheet_to_markdown

    if (paper is None) != all_papers:
        raise typer.BadParameter(f"expected a paper or --all; papers: {', '.join(papers())}")
    store = cli.load_settings({"results": results}).store
    sheets = [paper_sheet(each, store) for each in (papers() if paper is None else (paper,))]
    if as_json:
        print_json(papers=sheets)
    elif sheet_format == "markdown":
        print_stdout("\n".join(sheet_to_markdown(each, tables=tables) for each in sheets))
    else:
        print_stdout("\n".join(format_sheet(each, output_width(), tables=tables) for each in sheets))
    if not any(study.done for each in sheets for study in each.studies):
        if paper is not None and paper.endswith(".csv"):
            print_stderr(
                f'no study in the store shows {paper}: name it in one, [study] published = "{paper}"'
            )
        else:
            committed = other_results(store, file=next(iter(shipped_studies().values())))
            print_stderr(f"no trial of {paper or 'a paper'} has ended in {store.absolute_place}{committed}")


@app.command()
def build(
    paper: Annotated[
        Path, typer.Argument(metavar="[FILE]", dir_okay=False, help="The TOML file of the paper.")
    ] = Path("paper.toml"),
    *,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    r"""Write the tables, figures and numbers of your own paper, and print the names of the files.

    FILE lists the studies of the paper, and gives a name to each number that the paper's text quotes. In the
    text, \am{NAME} prints the number with this name, or ?? if it has no results yet. The command also writes
    files with the settings of the studies, and with their training time and devices. It deletes files of
    earlier builds that no longer belong to the paper. Exits with 1 if the store has no results of these
    studies.
    """
    from ...reporting.manuscript.files import write_paper
    from ...reporting.tables.render.latex import unicode_note

    found = _read(paper, results)
    with waiting(f"making {found.folder}"):
        files = write_paper(found)
    written = "\n".join(each.read_text(encoding="utf-8") for each in files if each.suffix == ".tex")
    if needed := unicode_note(written):
        print_stderr(f"the LaTeX code in {found.folder} {needed}")
    if as_json:
        print_json(files=files, numbers=found.numbers)
    else:
        print_stdout("\n".join(map(str, files)))


def _read(paper: Path, results: str | None) -> Manuscript:
    """Read the TOML file of a paper, and print notes on its studies.

    They are on studies without results, on stored trials with other settings, on studies whose last run had
    overrides, and on numbers that lack trials or are biased. Exit with 1 if no study has results.
    """
    from ...reporting.manuscript.paper_file import read_manuscript
    from ..missing_results import note_missing_results, note_other_versions

    found = read_manuscript(paper, lambda place: cli.load_settings({"results": results or place}).store)
    missing: list[bool] = []
    for each in found.studies:
        opened = reporting.StudyResults(each.study, each.store)
        missing.append(note_missing_results(opened))
        note_other_versions(opened, where_missing=True)
    if all(missing):
        raise typer.Exit(EXIT_FAILED)
    for study in (each.study for each in found.studies):
        if study.document.overrides:
            changes = ", ".join(study.document.overrides)
            instead = "list its file in [paper] studies to use the settings of the file"
            print_stderr(f"{study.name}: its last run had --set {changes}; {instead}")
    for name, number in found.numbers.items():
        for note in filter(None, (number.gaps, number.bias) if "." not in name else ()):
            print_stderr(f"{name}: {note}")
    return found
