"""`activemem study show`, `new` and `promote`: what a study says, a new file, its best points."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from ..options import JsonOption, OverridesOption, ResultsOption
from ..output import EXIT_WRONG_INPUT, output_width, print_json, print_stderr, print_stdout
from .study import StudyName, app


@app.command()
def show(
    study: StudyName,
    *,
    overrides: OverridesOption = None,
    sources: Annotated[
        bool, typer.Option("--sources", help="Say where each comes from: paper, program, or ours and why.")
    ] = False,
    best: Annotated[
        int | None,
        typer.Option("--best", min=1, metavar="N", help="List the N best points of a search instead."),
    ] = None,
    toml: Annotated[
        bool, typer.Option("--toml", help="Print the study's file instead, as the start of your own.")
    ] = False,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """List every setting of a study with its value, the defaults behind those that its file gives.

    With --best N the best points of a search so far: what they measured, their seeds and their values. With
    --toml the text of its file.
    """
    given = {"--sources": sources, "--best": best, "--toml": toml, "--json": as_json}
    if toml and (others := [name for name, value in given.items() if value and name != "--toml"]):
        raise typer.BadParameter(f"expected --toml or {others[0]}, got both")
    if best is not None:
        return _show_best(study, overrides, best, results, as_json=as_json)
    from ...studies.last_run import load_last_run
    from ..machine_settings import load_settings
    from ..views.settings import format_settings

    found = load_last_run(study, load_settings({"results": results}).store, overrides or ())
    if toml:
        print_stdout(found.text)
    elif as_json:
        from ..pages import StudyShowPage

        print_json(StudyShowPage.model_validate(found))
    else:
        print_stdout(format_settings(found, sources=sources))
    return None


def _show_best(
    study: str, overrides: list[str] | None, count: int, results: str | None, *, as_json: bool
) -> None:
    from ...reporting.results import open_study
    from ...reporting.tables.render import rich
    from ...reporting.tables.tidy import iter_records
    from ..machine_settings import load_settings

    store = load_settings({"results": results}).store
    opened = open_study(study, store, overrides or ())
    table = opened.best_table(count).table
    if as_json:
        from ..pages import StudyShowPage

        page = StudyShowPage.model_validate(opened.study)
        print_json(page.model_copy(update={"settings": (), "points": list(iter_records(table))}))
    else:
        print_stdout(rich.render(table, width=output_width()), styled=True)


@app.command()
def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The study file to write, as my-study.toml.")],
) -> None:
    """Write a small study file with a comment at each key, to be changed into your own.

    It runs as it is, in a minute or two on a CPU. A file that exists is not overwritten.
    """
    from ...studies.new_study import new_study_text

    text = new_study_text(file.stem)
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        print_stderr(f"{file}: expected a new file, got one that exists; choose another name")
        raise typer.Exit(EXIT_WRONG_INPUT) from None
    print_stdout(f"{file}\nsee what it trains: activemem study plan {shlex.quote(str(file))}")


@app.command()
def promote(
    study: StudyName,
    *,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The study file that is written.")],
    best: Annotated[int, typer.Option("--best", min=1, metavar="N", help="Take the N best points.")] = 1,
    path: Annotated[
        bool, typer.Option("--path", help="Lead from the baseline to the best point instead, step by step.")
    ] = False,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, metavar="N", help="Train each with N seeds that are new.")
    ] = 5,
    overrides: OverridesOption = None,
    results: ResultsOption = None,
) -> None:
    """Write the study that decides about a search: its best points beside its baseline, on fresh seeds.

    The best of many noisy points owes a part of its lead to its noise. The new study has a claim for each
    point, which its own trainings alone decide. With --path its cells lead from the baseline to the best
    point, at each round by the change that is best, so that each step's gain is told.
    """
    from ...reporting.results import open_study
    from ...reporting.search.promotion import PromotionError, find_winners
    from ...studies.study import load_study
    from ...studies.text.command_line import command_line
    from ...studies.text.units import plural
    from ..machine_settings import load_settings
    from ..missing_results import note_missing_results

    if out.exists():
        raise PromotionError(f"expected a new file, got {out}, which is there")
    found = open_study(study, load_settings({"results": results}).store, overrides or ())
    note_missing_results(found)
    text = found.promote(best=best, seeds=seeds, path=path)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    written = load_study(out)
    count = len(find_winners(found.study, found.points, best)) if found.points and not path else best
    if count < best:
        print_stderr(f"--best {best}: {found.study.name} has only {plural(count, 'point')} to promote")
    print_stdout(f"{out}: {written.name}, {plural(len(written.trials), 'trial')}")
    print_stdout(command_line("study", "run", str(out)))
