"""`activemem study coordinates`: whether activations change as much at all widths."""

from __future__ import annotations

from typing import Annotated

import typer

from ..options import DataOption, JsonOption, OverridesOption
from ..output import print_json, print_stdout, print_waiting
from .study import StudyFile, app


@app.command()
def coordinates(
    study: StudyFile,
    *,
    steps: Annotated[
        int, typer.Option("--steps", min=1, metavar="N", help="The number of training steps of each model.")
    ] = 5,
    overrides: OverridesOption = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train each size of a ladder for a few steps and print how much the activations of each layer change.

    With μP (mup in [model]) each layer changes by the same amount at all widths. The best learning rate is
    then the same for all widths. Without μP the changes grow with the width. Nothing is stored.
    """
    from ...engine.probes.coordinates import coordinate_check
    from ...studies.study import load_study
    from ..coordinates import coordinates_page, format_coordinates, ladder_groups
    from ..machine_settings import load_settings

    found = load_study(study, overrides or ())
    print_waiting(f"training each size for {steps} steps")
    folder = load_settings({"data": data}).data
    checks = {
        group: coordinate_check(by_width, steps, folder) for group, by_width in ladder_groups(found).items()
    }
    if as_json:
        print_json(coordinates_page(found, steps, checks))
    else:
        print_stdout(format_coordinates(found, steps, checks))
