"""`activemem curve`: the figures of a study, as files."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import AsJson, Results
from .streams import give, give_json, wrong_input

if TYPE_CHECKING:
    from ..studies.curve import Curve
    from ..studies.curve_spec import CurveSpec
    from ..studies.study import Study

app = typer.Typer(help="Draw the figures of a paper from a study's results.", no_args_is_help=True)


class Form(StrEnum):
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
    form: Annotated[
        Form | None, typer.Option("--format", help="How to draw it; else as the file is called, or svg.")
    ] = None,
    as_json: AsJson = False,
    results: Results = None,
) -> None:
    """Draw a study's figures from what the store holds of it, and print the names of the files.

    A name means the study as it was last run, with its overrides; a path means the file. With --json the
    numbers behind the figures are printed, and nothing is drawn.
    """
    from ..storage import Store, StoreError
    from ..studies.curve import CurveError
    from ..studies.curves import curve as made
    from ..studies.faults import StudyError
    from ..studies.wanted import wanted
    from .finding import as_last_run
    from .settings import SettingsError, settings

    with wrong_input(CurveError, SettingsError, StoreError, StudyError, OSError):
        store = Store(settings({"results": results}).results)
        chosen = as_last_run(study, store)
        specs = _specs(chosen, curve)
        form, paths = _files(chosen, specs, out, form)
        outcomes, metrics = store.trials(wanted([chosen])), None
        if any(spec.over_time for spec in specs):
            metrics = store.metrics([trial.id for trial in chosen.trials()])
        curves = [made(chosen, spec, outcomes, metrics) for spec in specs]
        if as_json:
            give_json([asdict(each) for each in curves])
        else:
            _draw(curves, paths, form)


def _draw(curves: list[Curve], paths: list[Path], form: Form) -> None:
    """Draw each figure into its file, and print the file's name."""
    from ..studies.figures import draw

    for each, path in zip(curves, paths, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(draw(each, form.value))
        give(str(path))


def _specs(study: Study, name: str | None) -> list[CurveSpec]:
    """The figures that are asked for; CurveError if there are none."""
    from ..studies.curve import CurveError
    from ..studies.faults import nearest

    if not study.curves:
        raise CurveError(f"study {study.name} asks for no figure: it has no [[curve]]")
    names = [spec.name for spec in study.curves]
    if name is not None and name not in names:
        raise CurveError(f"study {study.name} has no curve '{name}'{nearest(name, names)}")
    return [spec for spec in study.curves if name in (None, spec.name)]


def _files(
    study: Study, specs: list[CurveSpec], out: str | None, form: Form | None
) -> tuple[Form, list[Path]]:
    """How the figures are drawn, and the file of each: as it is named, or by the figure in a folder."""
    from ..studies.curve import CurveError

    if out is None or out.endswith("/") or Path(out).is_dir():
        form = form or Form.SVG
        folder = Path(out or ".")
        return form, [folder / f"{study.name}-{spec.name}.{form.value}" for spec in specs]
    if len(specs) > 1:
        names = ", ".join(spec.name for spec in specs)
        raise CurveError(f"--out: expected a folder such as {out}/ for {len(specs)} figures: {names}")
    called = Path(out).suffix.removeprefix(".").lower()
    if form is None and called not in list(Form):
        raise CurveError(f"--out: expected a name in .svg, .png or .pdf, or --format, got '{out}'")
    return form or Form(called), [Path(out)]
