"""Output of `study coordinates`: how much the activations of each layer change at each width."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap

from ..engine.probes.coordinates import GROWS, SHRINKS, CoordinateError, LayerChange
from ..studies.schema.factors import SEED, level_name
from ..studies.schema.settings import TrialSettings
from ..studies.study import Study
from ..studies.text.units import WIDTH, plural, side_by_side
from .pages import StudyCoordinatesPage

STEPS = 5
"""The number of training steps of each model."""

Checks = Mapping[str, Sequence[LayerChange]]
"""The layers of each model, compared across widths, by the model's levels of factors other than size."""


def ladder_groups(study: Study) -> dict[str, dict[int, list[TrialSettings]]]:
    """Return the settings of all trials with a size from [ladder], by model and then by width (d_model).

    A model is named by the levels of its other factors, without the seed. Raise CoordinateError for a study
    without a ladder.
    """
    if study.ladder is None:
        raise CoordinateError(f"{study.name} has no [ladder]; this command compares the widths of a ladder")
    names = [
        name
        for name, levels in study.factors.items()
        if name not in (*study.design.ladder, SEED) and len(levels) > 1
    ]
    found: dict[str, dict[int, list[TrialSettings]]] = {}
    for trial in study.trials:
        group = ", ".join(f"{name}={level_name(trial.levels[name])}" for name in names)
        by_width = found.setdefault(group, {})
        by_width.setdefault(trial.settings.model.d_model, []).append(trial.settings)
    return found


def verdict(layers: Sequence[LayerChange]) -> str:
    """Describe how the changes of activations depend on the width: flat, or growing and shrinking layers."""
    changing = {
        "growing": [each.layer for each in layers if each.grows],
        "shrinking": [each.layer for each in layers if each.shrinks],
    }
    found = [f"{what}: {', '.join(names)}" for what, names in changing.items() if names]
    return "; ".join(found) or "flat: one rate suits all widths"


def format_coordinates(study: Study, checks: Checks) -> str:
    """Return, for each model, a table of the μP coordinate check and its verdict.

    A table has a row for each layer and a column for each width. The verdict says whether the changes depend
    on the width.
    """
    return "\n".join(_lines(study, checks))


def _lines(study: Study, checks: Checks) -> Iterator[str]:
    yield f"{study.name} · mean change of the activations in {plural(STEPS, 'step')}, by d_model"
    for group, layers in checks.items():
        yield ""
        if group:
            yield f"  {group}"
        yield from _table(layers)
        lowest = f"{SHRINKS:g}".replace("-", "−")
        text = f"{verdict(layers)} (above {GROWS:g} grows, below {lowest} shrinks)"
        yield from wrap(text, WIDTH, initial_indent="  ", subsequent_indent="  ")


def _table(layers: Sequence[LayerChange]) -> Iterator[str]:
    """Yield a row for each layer: the change of its activations at each width, and the growth exponent.

    A table that is too wide is split into blocks of columns.
    """
    widths = list(layers[0].changes)
    columns = [[str(width), *(f"{each.changes[width]:.3g}" for each in layers)] for width in widths]
    columns += [["exponent", *(f"{each.exponent:+.2f}".replace("-", "−") for each in layers)]]
    names = ["", *(each.layer for each in layers)]
    widest = (max(map(len, column)) for column in columns)
    texts = [[f"{text:>{size}}" for text in column] for column, size in zip(columns, widest, strict=True)]
    for block in side_by_side(texts, names, width=WIDTH - 2, gap=3):
        yield from (f"  {row}" for row in block)


def coordinates_page(study: Study, checks: Checks) -> StudyCoordinatesPage:
    """Return the JSON output of `study coordinates`."""
    models = [
        {
            "model": group,
            "flat": not any(each.grows or each.shrinks for each in layers),
            "layers": [
                {"layer": each.layer, "changes": each.changes, "exponent": each.exponent} for each in layers
            ],
        }
        for group, layers in checks.items()
    ]
    return StudyCoordinatesPage(study=study.name, steps=STEPS, models=models)
