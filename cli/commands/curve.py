"""`activemem curve`: the figures of a study, as files."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..options import JsonOption, ResultsOption
from ..output import exit_on_error, print_json, print_stdout

if TYPE_CHECKING:
    from ...reporting.curves.curve import Curve
    from ...studies.schema.curve import CurveSpec
    from ...studies.study import Study

app = typer.Typer(help="Draw the figures of a paper from a study's results.", no_args_is_help=True)


class ImageFormat(StrEnum):
    """What a figure can be drawn as."""

    SVG = "svg"
    PNG = "png"
    PDF = "pdf"


@app.command()
def render(
    study: Annotated[
        str | None, typer.Argument(metavar="[STUDY]", help="A study by its name or file; else the last one.")
    ] = None,
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
    """Draw a study's figures from what the store holds of it, and print the names of the files.

    A name means the study as it was last run, with its overrides; a path means the file. With --json the
    numbers behind the figures are printed, and nothing is drawn.
    """
    from ...reporting.curves.build import build_curve as made
    from ...reporting.curves.curve import CurveError
    from ...reporting.probe_metrics import displayed_metrics
    from ...storage import Store, StoreError
    from ...studies.lookup import load_last_run
    from ...studies.text.errors import StudyError
    from ..machine_settings import SettingsError, load_settings

    with exit_on_error(CurveError, SettingsError, StoreError, StudyError, OSError):
        store = Store(load_settings({"results": results}).results)
        chosen = load_last_run(study, store)
        specs = _select_curves(chosen, curve)
        image_format, paths = _output_files(chosen, specs, out, image_format)
        outcomes, metrics = store.trials(displayed_metrics([chosen])), None
        if any(spec.needs_history for spec in specs):
            metrics = store.metrics([trial.id for trial in chosen.trials()])
        curves = [made(chosen, spec, outcomes, metrics) for spec in specs]
        if as_json:
            print_json([asdict(each) for each in curves])
        else:
            _write_images(curves, paths, image_format)


def _write_images(curves: list[Curve], paths: list[Path], image_format: ImageFormat) -> None:
    """Draw each figure into its file, and print the file's name."""
    from ...reporting.curves.draw import draw

    for each, path in zip(curves, paths, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(draw(each, image_format.value))
        print_stdout(str(path))


def _select_curves(study: Study, name: str | None) -> list[CurveSpec]:
    """The figures that are asked for; CurveError if there are none."""
    from ...reporting.curves.curve import CurveError
    from ...studies.text.errors import nearest_hint

    if not study.curves:
        raise CurveError(f"study {study.name} asks for no figure: it has no [[curve]]")
    names = [spec.name for spec in study.curves]
    if name is not None and name not in names:
        raise CurveError(f"study {study.name} has no curve '{name}'{nearest_hint(name, names)}")
    return [spec for spec in study.curves if name in (None, spec.name)]


def _output_files(
    study: Study, specs: list[CurveSpec], out: str | None, image_format: ImageFormat | None
) -> tuple[ImageFormat, list[Path]]:
    """How the figures are drawn, and the file of each: as it is named, or by the figure in a folder."""
    from ...reporting.curves.curve import CurveError

    if out is None or out.endswith("/") or Path(out).is_dir():
        image_format = image_format or ImageFormat.SVG
        folder = Path(out or ".")
        return image_format, [folder / f"{study.name}-{spec.name}.{image_format.value}" for spec in specs]
    if len(specs) > 1:
        names = ", ".join(spec.name for spec in specs)
        raise CurveError(f"--out: expected a folder such as {out}/ for {len(specs)} figures: {names}")
    called = Path(out).suffix.removeprefix(".").lower()
    if image_format is None and called not in list(ImageFormat):
        raise CurveError(f"--out: expected a name in .svg, .png or .pdf, or --format, got '{out}'")
    return image_format or ImageFormat(called), [Path(out)]
