"""`activemem curve`: the figures of a study, as files."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..options import JsonOption, LastRunStudy, ResultsOption
from ..output import exit_on_error, print_json, print_stdout

if TYPE_CHECKING:
    from ...reporting.notebook import CurveDisplay

app = typer.Typer(help="Draw the figures of a paper from a study's results.", no_args_is_help=True)


class ImageFormat(StrEnum):
    """The formats of a figure."""

    SVG = "svg"
    PNG = "png"
    PDF = "pdf"


@app.command()
def render(
    study: LastRunStudy = None,
    *,
    curve: Annotated[
        str | None, typer.Option("--curve", metavar="NAME", help="One figure; else all.")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="FILE", help="The file of one figure, or a folder for all; else here."),
    ] = None,
    image_format: Annotated[
        ImageFormat | None,
        typer.Option("--format", help="How to draw it; else as the file is called, or svg."),
    ] = None,
    as_json: JsonOption = False,
    results: ResultsOption = None,
) -> None:
    """Draw a study's figures from its results in the store, and print the names of the files.

    A name means the study as it was last run, with its overrides; a path means the file. With --json the
    numbers behind the figures are printed, and nothing is drawn.
    """
    from ...reporting.curves.curve import CurveError
    from ...reporting.results import open_study
    from ...storage import Store, StoreError
    from ...studies.text.errors import StudyError
    from ..machine_settings import SettingsError, load_settings

    with exit_on_error(CurveError, SettingsError, StoreError, StudyError, OSError):
        store = Store(load_settings({"results": results}).results)
        chosen = open_study(study, store)
        curves = chosen.curves(curve)
        names = [each.curve.name for each in curves]
        image_format, paths = _output_files(chosen.study.name, names, out, image_format)
        if as_json:
            print_json([asdict(each.curve) for each in curves])
        else:
            _write_images(curves, paths, image_format)


def _write_images(curves: list[CurveDisplay], paths: list[Path], image_format: ImageFormat) -> None:
    """Draw each figure into its file, and print the file's name."""
    for each, path in zip(curves, paths, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(each.render(image_format.value))
        print_stdout(str(path))


def _output_files(
    study: str, names: list[str], out: str | None, image_format: ImageFormat | None
) -> tuple[ImageFormat, list[Path]]:
    """The format, and the file of each figure: the given one, or one named after the figure in a folder."""
    from ...reporting.curves.curve import CurveError

    if out is None or out.endswith("/") or Path(out).is_dir():
        image_format = image_format or ImageFormat.SVG
        folder = Path(out or ".")
        return image_format, [folder / f"{study}-{name}.{image_format.value}" for name in names]
    if len(names) > 1:
        listed = ", ".join(names)
        raise CurveError(f"--out: expected a folder such as {out}/ for {len(names)} figures: {listed}")
    suffix = Path(out).suffix.removeprefix(".").lower()
    if image_format is None and suffix not in list(ImageFormat):
        raise CurveError(f"--out: expected a name in .svg, .png or .pdf, or --format, got '{out}'")
    return image_format or ImageFormat(suffix), [Path(out)]
