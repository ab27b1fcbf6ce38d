"""A coordinate check as a person and as a program reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from ..engine.probes.coordinates import GROWS, CoordinateError, LayerChange
from ..studies.schema.factors import SEED
from ..studies.schema.level_names import level_name
from ..studies.schema.settings import TrialSettings
from ..studies.study import Study
from ..studies.text.units import WIDTH, plural

Checks = Mapping[str, Sequence[LayerChange]]
"""The layers of each model that is compared over widths, by the levels of factors that are no sizes."""


def ladder_groups(study: Study) -> dict[str, dict[int, list[TrialSettings]]]:
    """The trials of a ladder by what they have besides their size, and by d_model.

    Raises CoordinateError for a study without a ladder.
    """
    if study.ladder is None:
        raise CoordinateError(f"{study.name} has no [ladder], whose widths would be compared")
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
    """`flat`, or which layers grow."""
    growing = [each.layer for each in layers if each.grows]
    return f"growing: {', '.join(growing)}" if growing else "flat: a rate carries over"


def format_coordinates(study: Study, steps: int, checks: Checks) -> str:
    """A table for each model: layers by width, with the exponents, and the verdict."""
    return "\n".join(_lines(study, steps, checks))


def _lines(study: Study, steps: int, checks: Checks) -> Iterator[str]:
    yield f"{study.name} · mean change of an activation in {plural(steps, 'step')}, by d_model"
    for group, layers in checks.items():
        widths = list(layers[0].changes)
        rows = [("", *map(str, widths), "exponent")]
        rows += [
            (
                each.layer,
                *(f"{each.changes[width]:.3g}" for width in widths),
                f"{each.exponent:+.2f}".replace("-", "−"),
            )
            for each in layers
        ]
        sizes = [max(map(len, column)) for column in zip(*rows, strict=True)]
        yield ""
        if group:
            yield f"  {group}"
        for first, *others in rows:
            numbers = "".join(f"   {text:>{size}}" for text, size in zip(others, sizes[1:], strict=True))
            yield f"  {first:<{sizes[0]}}{numbers}"
        told = f"{verdict(layers)} (an exponent above {GROWS:g} grows)"
        yield from wrap(told, WIDTH, initial_indent="  ", subsequent_indent="  ")


def coordinates_page(study: Study, steps: int, checks: Checks) -> dict[str, Any]:
    """The same for programs."""
    return {
        "study": study.name,
        "steps": steps,
        "models": [
            {
                "model": group,
                "flat": not any(each.grows for each in layers),
                "layers": [
                    {
                        "layer": each.layer,
                        "changes": {str(width): change for width, change in each.changes.items()},
                        "exponent": each.exponent,
                    }
                    for each in layers
                ],
            }
            for group, layers in checks.items()
        ],
    }
