"""More commands of `activemem study`, such as `show` and `missing`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ... import cli, studies
from ...storage.files import write_file
from ...studies.text.errors import StudyError, command_line
from ...studies.text.units import listed, plural
from ..json_output import print_json
from ..options import JsonOption, OverridesOption, ResultsOption, number_option
from ..output import EXIT_WRONG_INPUT, output_width, print_stderr, print_stdout, waiting
from .study import StudyName, app

if TYPE_CHECKING:
    from ...studies.study import Study


@app.command()
def show(
    study: StudyName,
    *,
    overrides: OverridesOption = None,
    sources: Annotated[
        bool,
        typer.Option(
            "--sources",
            help="Show where each value is from: the paper, the paper's program, or a choice of the study's "
            "author (ours), with its reason.",
        ),
    ] = False,
    best: Annotated[
        int | None,
        number_option("--best", help="List the N best points of a search instead of the settings."),
    ] = None,
    toml: Annotated[
        bool, typer.Option("--toml", help="Print the study's file instead, as a template for your own.")
    ] = False,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """List every setting of a study with its value: first those in its file, then the defaults.

    It also lists the settings that generate the cells, such as a ladder, with the values of each size.

    --best N prints the best points of a search so far: their results, their numbers of seeds, and their
    parameter values. --toml prints the file of the study, even if a plug-in that it needs is not loaded.
    """
    from ...studies.last_run import recorded_text
    from ...studies.plan import design_settings, solved_sizes
    from ..machine_settings import open_results
    from ..views.settings import format_settings

    given = {"--sources": sources, "--best": best, "--toml": toml, "--json": as_json}
    if toml and (others := [name for name, value in given.items() if value and name != "--toml"]):
        raise typer.BadParameter(f"expected --toml or {others[0]}, got both")

    if toml and (text := recorded_text(study, cli.load_settings({"results": results}).store)):
        print_stdout(text)
        return
    opened = open_results(study, results, overrides, reads=("source",))
    found, table = opened.study, None if best is None else opened.best_table(best)
    if toml:
        print_stdout(found.document.text)
    elif as_json:
        keys: dict[str, object] = {"settings": found.source_sheet.settings}
        keys["design"] = dict(design_settings(found))
        keys["sizes"] = dict(solved_sizes(found)) if found.design.matched_size else {}
        keys["points"] = None
        if table is not None:
            keys = {"settings": (), "design": {}, "sizes": {}, "points": table}
        print_json(study=found.name, title=found.title, paper=found.paper, **keys)
    elif table is not None:
        from ...reporting.tables.render import rich

        print_stdout(rich.render(table, width=output_width()), styled=True)
    else:
        print_stdout(format_settings(found, sources=sources))


@app.command()
def new(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The study file to write, for example my-study.toml.")
    ],
) -> None:
    """Write a small study file with a comment at each key, as a start for your own.

    The study can run as it is, in a minute or two on a CPU. An existing file is not overwritten.
    """
    from ...studies.new_study import new_study_text

    text = new_study_text(file.stem)
    if file.exists():
        print_stderr(f"{file}: expected a new file, got an existing one; choose another name")
        raise typer.Exit(EXIT_WRONG_INPUT)
    write_file(file, text)
    print_stdout(f"{file}\nsee what it trains: activemem study plan {shlex.quote(str(file))}")


@app.command()
def schema() -> None:
    """Print the JSON Schema of study files, so that editors can complete and check them.

    Save the output as study.schema.json in the folder of your study files, and begin each study file with the
    line `#:schema study.schema.json`.
    """
    import json

    from ...studies.json_schema import study_schema

    print_stdout(json.dumps(study_schema(), indent=1, ensure_ascii=False))


@app.command()
def promote(
    study: StudyName,
    *,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The study file to write.")],
    best: Annotated[
        int, number_option("--best", help="The number of best points that the new study trains.")
    ] = 1,
    seeds: Annotated[int, number_option("--seeds", help="The number of new seeds of each point.")] = 5,
    results: ResultsOption = None,
) -> None:
    """Write a study file that tests whether the best points of a search really beat its baseline.

    The best of many noisy points owes part of its lead to noise. The new study trains the best points and the
    baseline again with new seeds. It has claims about the points, which only the new trainings decide.
    """
    from ...reporting.search.promotion import PromotionError, baseline_lead, find_winners
    from ..machine_settings import open_results
    from ..missing_results import note_missing_results

    if out.exists():
        raise PromotionError(f"expected a new file, got {out}, which exists; choose another name")
    found = open_results(study, results)
    note_missing_results(found)
    text = found.promote(best=best, seeds=seeds)
    written = _write_study(out, text)
    assert found.points is not None, "only a search has a study to promote"
    count = len(find_winners(found.study, found.points, best))
    if count < best:
        print_stderr(f"--best {best}: {found.study.name} has only {plural(count, 'point')} to promote")
    for lead in baseline_lead(found.study, found.points, best):
        print_stderr(lead)
    print_stdout(f"{out}: {written.name}, {plural(len(written.trials), 'trial')}")
    print_stdout(command_line("study", "run", str(out)))


def _write_study(path: Path, text: str) -> Study:
    """Write a new study file, and read it. A file with faults does not stay."""
    write_file(path, text)
    try:
        return studies.load_study(path)
    except StudyError:
        path.unlink()
        raise


@app.command()
def missing(
    study: StudyName,
    *,
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FILE", help="Write a study file with these changes.")
    ] = None,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """List single changes of a study's baseline that the store lacks, with the cost of each.

    The changes are the other levels of each factor, one at a time, and the baseline's recipe without each of
    its parts. Factors of the task keep the level of the baseline. Times are estimated as in `study plan`.
    """
    from ...reporting.missing_ablations import MissingError
    from ..machine_settings import open_results
    from ..views.missing import format_missing

    if write is not None and write.exists():
        raise MissingError(f"expected a new file, got {write}, which exists; choose another name")
    configured = cli.load_settings({"results": results})
    found, cells = open_results(study, results).missing_ablations(configured.machine)
    if as_json:
        print_json(study=found.study.name, held=found.held, cells=cells)
    else:
        print_stdout("\n".join(format_missing(found, cells, width=output_width())))
    if write is None:
        return
    if not cells:
        raise MissingError(f"{write} is not written: the store lacks no change of the baseline")
    written = _write_study(write, found.study_text(cells))
    print_stderr(f"{write}: {written.name}, {plural(len(written.trials), 'trial')}")
    print_stderr(command_line("study", "run", str(write)))


@app.command()
def importance(
    study: StudyName,
    *,
    metric: Annotated[
        str | None, typer.Option("--metric", metavar="NAME", help="One of several objectives of the search.")
    ] = None,
    results: ResultsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print how much each dimension of a search matters for the best points.

    The values are from Optuna's PED-ANOVA over the points that the search ranks. Each value says how much a
    dimension differs between the best tenth of the points and all points. The values add up to 1. A dimension
    that only some points have is compared among these points. The p-value of a dimension says how often it
    differs as much if the points' values are shuffled: above 0.05, its value may be due to chance.
    """
    from ...tracking.importance import dimension_importances
    from ..machine_settings import open_results

    opened = open_results(study, results)
    with waiting("shuffling the values of the points"):
        found = dimension_importances(opened.study, opened.store, metric)
    if as_json:
        keys = {"importance": found.shares, "p_values": found.p_values}
        print_json(study=opened.study.name, points=found.points, **keys)
        return
    width = max(map(len, found.shares))
    lines = [
        f"{name:<{width}}  {share:.2f}  p = {found.p_values[name]:.2f}"
        for name, share in found.shares.items()
    ]
    unclear = found.unclear
    told = f"; no clear difference from chance: {listed(unclear)}" if unclear else ""
    print_stdout("\n".join([*lines, f"over {found.points:,} ranked points{told}"]))
