"""`activemem judge`: tables, figures and verdicts over runs that another program has trained."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from ... import cli, reporting
from ...reporting.curves.figure_format import FigureFormat
from ...reporting.tables.render import own_format_names
from ...storage.files import write_file
from ..json_output import print_json
from ..options import JsonOption, number_option
from ..output import has_styles, output_width, prepare_output, print_stderr, print_stdout
from .claim import EXIT_REFUTED, EXIT_UNDECIDED

_FORMATS = "|".join(own_format_names())
_KEYS, _OUTPUT = "What the columns mean", "Output"


def judge(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUNS...",
            help="Files of runs (CSV, Parquet, results of lm_eval), a pattern such as '{arm}_{seed}.csv', or "
            "a study file with [runs].",
        ),
    ],
    *,
    factor: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column that is compared.", rich_help_panel=_KEYS),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN:lower|higher",
            help="A metric, and which of its values are better.",
            rich_help_panel=_KEYS,
        ),
    ] = None,
    seed: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column of seeds, '' for none.", rich_help_panel=_KEYS),
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN",
            help="In a chart of W&B: what names of runs mean, as in '{arm}-{seed}'.",
            rich_help_panel=_KEYS,
        ),
    ] = None,
    form: Annotated[
        Literal["rows", "wide", "curves", "lm-eval", "summary"] | None,
        typer.Option(help="The form of the files (default: as they look).", rich_help_panel=_KEYS),
    ] = None,
    spread: Annotated[
        Literal["sd", "se"] | None,
        typer.Option(
            help="In a summary: standard deviation, or standard error of the mean.", rich_help_panel=_KEYS
        ),
    ] = None,
    pair: Annotated[
        Literal["none", "seed"],
        typer.Option(
            help="seed, if equal seeds mean the same order of data and the same test data.",
            rich_help_panel=_KEYS,
        ),
    ] = "none",
    failed: Annotated[
        Literal["undecided", "left-out"],
        typer.Option(
            help="What runs without a final value do: leave claims undecided, or, if they failed for other "
            "reasons than their results, be left out.",
            rich_help_panel=_KEYS,
        ),
    ] = "undecided",
    tries: Annotated[
        int | None,
        number_option(help="How many were tried in all, shown or not.", rich_help_panel=_KEYS),
    ] = None,
    planned: Annotated[
        int | None,
        number_option(help="The runs of each cell that were planned.", rich_help_panel=_KEYS),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="The row with which the table compares the others.")
    ] = None,
    claim: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLAIM", help="A claim, such as 'loss[arm=a] < loss[arm=b] - 0.01'. Repeatable."
        ),
    ] = None,
    over: Annotated[
        list[str] | None,
        typer.Option(metavar="FACTOR", help="A factor, such as lr, of whose levels the best counts."),
    ] = None,
    pick_by: Annotated[
        str | None, typer.Option(metavar="METRIC", help="The metric that picks the level of --over.")
    ] = None,
    table_format: Annotated[
        str, typer.Option("--format", metavar=_FORMATS, help="The format of tables.", rich_help_panel=_OUTPUT)
    ] = "rich",
    notes: Annotated[
        bool,
        typer.Option("--notes", help="Say how the numbers of tables were tested.", rich_help_panel=_OUTPUT),
    ] = False,
    figures: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Draw the figures into this folder.", rich_help_panel=_OUTPUT),
    ] = None,
    figure_format: Annotated[
        FigureFormat, typer.Option(help="The format of figures.", rich_help_panel=_OUTPUT)
    ] = "svg",
    write: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the study file that was understood.", rich_help_panel=_OUTPUT
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Judge runs that another program has trained: tables, figures and verdicts. Nothing is stored.

    Names of columns are guessed, and notes say so. What no file shows is declared by an option, or asked for.

    Exits with 0 unless a claim is not confirmed: with 1 if one is refuted, and with 3 if none is, but one is
    undecided. Exits with 2 if the runs allow no verdict.
    """
    from ...reporting.judged_runs import judge as judge_runs
    from ...reporting.tables.render import render as render_table
    from ...reporting.tables.render import rich
    from ...reporting.tables.table import iter_records

    cli.load_settings({})  # loads the plug-ins of this machine
    source = runs[0] if len(runs) == 1 else runs
    options = {
        "factors": factor or (),
        "metrics": dict(_direction(each) for each in metric or ()),
        "seed": seed,
        "names": names,
        "form": form,
        "spread": spread,
        "pair": pair,
        "failed": failed,
        "tries": tries,
        "planned": planned,
        "baseline": baseline,
        "claims": claim or (),
        "over": over or (),
        "pick_by": pick_by,
    }
    found = judge_runs(source, **options)
    tables, checked = found.tables(), found.check_claims()
    if as_json:
        cells = [each for table in tables for each in iter_records(table)]
        origin = found.runs.origin
        print_json(study=found.study.name, origin=origin, notes=found.notes, cells=cells, claims=checked)
    elif table_format == "rich":
        ansi, width = has_styles(sys.stdout), output_width()
        shown = [rich.render(each, width=width, ansi=ansi, notes=notes) for each in tables]
        print_stdout("\n".join([*shown, *([found.claims_text(width=width)] if checked else [])]), styled=True)
    else:
        print_stdout("\n".join(render_table(each, table_format) for each in tables))
        if checked:
            print_stderr(found.claims_text(width=output_width()))
    for note in found.runs.told:
        print_stderr(f"note: {note}")
    for curve in found.curves() if figures is not None else ():
        path = (figures or Path()) / f"{found.study.name}-{curve.name}.{figure_format}"
        prepare_output(path)
        write_file(path, curve.render(figure_format))
        print_stderr(str(path))
    if write is not None:
        _write_study(write, found.text(), found.runs.settings.file)
    verdicts = {each.verdict for each in checked}
    if reporting.Verdict.REFUTED in verdicts:
        raise typer.Exit(EXIT_REFUTED)
    if verdicts - {reporting.Verdict.CONFIRMED}:
        raise typer.Exit(EXIT_UNDECIDED)


def _direction(text: str) -> tuple[str, str]:
    """Return the column of `COLUMN:lower` and its direction, which may be missing."""
    column, colon, better = text.rpartition(":")
    return (column, better) if colon and better in ("lower", "higher") else (text, "")


def _write_study(path: Path, text: str, files: tuple[str, ...]) -> None:
    """Write a study file. The files of its runs are named from its folder."""
    if path.exists():
        raise typer.BadParameter(f"--write: {path} is there already")
    for name in files:
        beside = Path(os.path.relpath(name, path.parent)).as_posix()
        text = text.replace(f'"{name}"', f'"{beside}"', 1)
    prepare_output(path)
    write_file(path, text.encode())
    print_stderr(str(path))
