"""`activemem curve`: the figures of a study, as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, get_args

import typer

from ... import reporting
from ...reporting.curves.figure_format import FigureFormat
from ...storage.files import write_file
from ...studies.text.units import listed
from ..json_output import print_json
from ..options import JsonOption, LastRunStudy, ResultsOption
from ..output import prepare_output, print_stdout, waiting

app = typer.Typer(help="Draw the figures that a study file describes.", no_args_is_help=True)


@app.command()
def render(
    study: LastRunStudy = None,
    *,
    curve: Annotated[
        str | None,
        typer.Option("--curve", metavar="NAME", help="The name of a figure (default: all figures)."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="PATH",
            help="A folder; or the file of one figure, if it ends with .svg, .png or .pdf (default: here).",
        ),
    ] = None,
    image_format: Annotated[
        FigureFormat | None,
        typer.Option("--format", help="The file format (default: the ending of --out, else svg)."),
    ] = None,
    as_json: JsonOption = False,
    results: ResultsOption = None,
) -> None:
    """Draw a study's figures from its results in the store, and print the names of the files.

    If STUDY is a name, the command uses this study as it last ran, with its --set overrides. If STUDY is a
    path, it uses the file as it is now. With --json the command prints the numbers in the figures and draws
    nothing. Exits with 1 if the store has no results.
    """
    from ..machine_settings import open_results
    from ..missing_results import note_other_versions, require_results

    chosen = open_results(study, results, reads=("curve",))
    curves = chosen.curves(curve)
    require_results(chosen)
    names = [each.name for each in curves]
    image_format, paths = _output_files(chosen.study.name, names, out, image_format)
    if as_json:
        print_json(curves=curves)
    else:
        for each, path in zip(curves, paths, strict=True):
            prepare_output(path)
            with waiting(f"drawing {path}"):
                write_file(path, each.render(image_format))
            print_stdout(str(path))
        note_other_versions(chosen, where_missing=True)


def _output_files(
    study: str, names: list[str], out: str | None, image_format: FigureFormat | None
) -> tuple[FigureFormat, list[Path]]:
    """Return the format and the path of each figure's file.

    `out` is one file if it ends with a known format. Otherwise it is a folder, for one figure as for many.
    """
    known = get_args(FigureFormat)
    suffix = Path(out or "").suffix.removeprefix(".").lower()
    if out is None or out.endswith("/") or not suffix or Path(out).is_dir():
        image_format = image_format or "svg"
        return image_format, [Path(out or ".") / f"{study}-{name}.{image_format}" for name in names]
    if (found := next((each for each in known if each == suffix), None)) is None:
        endings = listed([f".{each}" for each in known], "or")
        raise reporting.CurveError(
            f"--out: expected a file in {endings}, or a folder as in {out}/, got '{out}'"
        )
    if image_format not in (None, found):
        raise reporting.CurveError(
            f"--out: expected a name in .{image_format}, as --format says, got '{out}'"
        )
    if len(names) > 1:
        raise reporting.CurveError(
            f"--out: '{out}' is one file for {len(names)} figures, {listed(names)}: "
            f"write a folder, as in --out {Path(out).stem}/ --format {found}, or --curve {names[0]}"
        )
    return found, [Path(out)]
