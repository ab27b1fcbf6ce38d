"""Check that a design fits its factors, and has the keys that it needs and no others."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from ...diagnostics import nearest_hint
from ..catalog.metrics import METRICS_AND_COSTS, find_metric, metric_family, unknown_metric
from ..designs.fractions import MAX_FACTORS
from ..designs.hadamard import MAX_SCREENED
from ..text.diagnostics import Diagnostics
from ..text.toml_positions import KeyPath
from ..text.units import plural
from .design import STEPWISE, Design, level_key
from .factors import SEED
from .settings import Level, StudySettings

RESOLUTIONS = {"III": 3, "IV": 4, "V": 5}
"""The resolutions of fractions, as the field writes them."""

TARGET_PATH: KeyPath = ("study", "target")
_DESIGN_PATH: KeyPath = ("study", "design")

_SAMPLES = ("random", "latin_hypercube")
_DESIGNS_WITH = {
    "target": STEPWISE,
    "metric": ("path",),
    "direction": ("path",),
    "resolution": ("fractional",),
    "cells": _SAMPLES,
    "design_seed": _SAMPLES,
}
_WHOLE = ("path", "zip", "fractional", "plackett_burman", "latin_hypercube")  # without conditional factors
_REQUIRED = {
    "metric": '"loss"',
    "resolution": '"IV"',
    "cells": "24",
    "design_seed": "0",
}  # with an example of each

DESIGN_KEYS = ("around", "labels", *_DESIGNS_WITH)
"""The keys of [study] that belong to a design."""


def read_around(
    diagnostics: Diagnostics, header: StudySettings | None, factors: Mapping[str, tuple[Level, ...]]
) -> tuple[str, ...]:
    """Return the factors with which the design is crossed; report and drop those that cannot be."""
    names = header.around if header else ()
    if names and header and header.design == "grid":
        message = "a grid crosses all of its factors: around belongs to another design"
        diagnostics.report_error(("study", "around"), message)
        return ()
    for name in names:
        if name == SEED:
            diagnostics.report_error(("study", "around"), "seeds cross every cell already")
        elif name not in factors:
            message = f"unknown factor '{name}'{nearest_hint(name, factors)}"
            diagnostics.report_error(("study", "around"), message)
    return tuple(dict.fromkeys(name for name in names if name in factors))


def read_labels(
    diagnostics: Diagnostics, header: StudySettings | None, crossed: Collection[str], names: Collection[str]
) -> tuple[str, ...]:
    """Return the factors that only name cells; report and drop those that cannot."""
    labels = header.labels if header else ()
    path: KeyPath = ("study", "labels")
    for name in labels:
        if name not in names:
            diagnostics.report_error(path, f"unknown factor '{name}'{nearest_hint(name, names)}")
        elif name in crossed and header and (header.design != "zip" or name in header.around):
            message = f"{name} would name the same trials differently"
            diagnostics.report_error(path, f'{message}: a label goes with others in a "zip" or in [[cells]]')
    return tuple(dict.fromkeys(name for name in labels if name in names))


def check_design(diagnostics: Diagnostics, header: StudySettings, design: Design) -> Design:
    """Return the design; report faults of its factors or keys and return one that any factors fit."""
    misplaced, faults = [*_misplaced_keys(header)], [*_missing_keys(header), *_fitting_faults(design)]
    for path, message in misplaced:
        diagnostics.report_error(path, message, key=True)
    for path, message in faults:
        diagnostics.report_error(path, message)
    if not faults:
        return design
    return replace(design, kind="grid" if design.kind == "zip" else "one_at_a_time")


def _misplaced_keys(header: StudySettings) -> Iterator[tuple[KeyPath, str]]:
    """Keys that belong to other designs."""
    for key, designs in _DESIGNS_WITH.items():
        if key in header.model_fields_set and header.design not in designs:
            names = " and ".join(f'"{name}"' for name in designs)
            yield ("study", key), f'{key} belongs to design = {names}, got "{header.design}"'


def _missing_keys(header: StudySettings) -> Iterator[tuple[KeyPath, str]]:
    """Keys without which the design is not known."""
    for key, example in _REQUIRED.items():
        if header.design in _DESIGNS_WITH[key] and getattr(header, key) is None:
            yield _DESIGN_PATH, f"{header.design} needs {key}, as in {key} = {example}"


def _fitting_faults(design: Design) -> Iterator[tuple[KeyPath, str]]:
    """Factors that a design cannot combine."""
    inner = design.inner
    if design.conditions and design.kind in _WHOLE:
        yield ("when",), f"in a design of {design.kind} every factor is in every cell"
    match design.kind:
        case "zip":
            if len({len(levels) for levels in inner.values()}) > 1:
                lengths = ", ".join(f"{name} has {len(levels)}" for name, levels in inner.items())
                yield _DESIGN_PATH, f"zip pairs factors of equally many levels, but {lengths}"
            else:
                yield from _repeated_cells(design)
        case "cumulative":
            yield from _cumulative_faults(design)
        case "path":
            yield from _cumulative_faults(design)
            yield from _path_faults(design)
        case "fractional" | "plackett_burman":
            most = MAX_FACTORS if design.kind == "fractional" else MAX_SCREENED
            for name, levels in inner.items():
                if len(levels) > 2:
                    message = f"{design.kind} takes factors of two levels, got {len(levels)}"
                    yield ("factors", name), message
            if len(design.two_level) > most:
                yield (
                    _DESIGN_PATH,
                    f"expected at most {most} factors of two levels, got {len(design.two_level)}",
                )
        case "random" | "latin_hypercube":
            yield from _sample_faults(design)
        case _:
            pass


def _repeated_cells(design: Design) -> Iterator[tuple[KeyPath, str]]:
    """Cells of a zip that differ in labels alone, or in nothing."""
    met: dict[tuple[str, ...], int] = {}
    for number, row in enumerate(design.rows()):
        key = tuple(level_key(level) for name, level in row.items() if name not in design.labels)
        if key and met.setdefault(key, number) != number:
            place = ("factors", next(iter(row)), number)
            yield place, f"cell {number + 1} of the zip is cell {met[key] + 1} again"


def _cumulative_faults(design: Design) -> Iterator[tuple[KeyPath, str]]:
    """Factors of several levels without one to end at, and those that end where they begin."""
    for name, levels in design.inner.items():
        if name not in design.target and len(levels) > 2:
            example = f"target = {{ {name} = … }}"
            yield ("factors", name), f"expected two levels, or one to end at in {example}, got {len(levels)}"
    if not all(design.factors.values()):  # which is a fault of its own
        return
    start = {name: design.baseline_level(name) for name in design.inner}
    for name, condition in design.conditions.items():
        order = list(start)
        late = [each for each in condition if each in start and order.index(each) > order.index(name)]
        if name in start and late:
            yield ("factors", name), f"expected it behind {' and '.join(late)}, on which it depends"
    for name, level in design.target.items():
        if name in design.around:
            yield (*TARGET_PATH, name), f"{name} crosses the design: it ends at none of its levels"
        elif name in design.factors and level_key(level) == level_key(design.baseline_level(name)):
            yield (*TARGET_PATH, name), f"expected a level of {name} other than the baseline's"


def _path_faults(design: Design) -> Iterator[tuple[KeyPath, str]]:
    """Yield faults of a path: a size to solve, and a metric that cannot decide."""
    path: KeyPath = ("study", "metric")
    if design.matched_size is not None:
        yield ("study", "match"), "a path changes one factor at a time, and no size with it"
    if design.metric and metric_family(design.metric) not in METRICS_AND_COSTS:
        yield path, unknown_metric(design.metric)
    elif design.metric and not design.direction and find_metric(design.metric).higher_is_better is None:
        yield path, f"neither way is better of {design.metric} by itself: say direction = 'max' or 'min'"


def _sample_faults(design: Design) -> Iterator[tuple[KeyPath, str]]:
    """More cells than a grid has, and a hypercube that is not found."""
    size = math.prod(map(len, design.inner.values()))
    if design.sample_cells > size:
        yield (
            ("study", "cells"),
            f"expected at most {size:,}, all cells of the grid, got {design.sample_cells:,}",
        )
    elif design.kind == "random" and (found := len(design.rows())) < design.sample_cells:
        message = f"found {found:,} different cells, since factors are not everywhere"
        yield ("study", "cells"), f"{message}, got {design.sample_cells:,}"
    elif design.kind == "latin_hypercube" and design.sample_cells > 0 and not design.rows():
        message = f"found no hypercube of {design.sample_cells:,} different cells in a grid of {size:,}"
        yield ("study", "cells"), f'{message}: ask for fewer, or say design = "random"'


def check_max_seeds(diagnostics: Diagnostics, header: StudySettings | None, design: Design) -> None:
    """Note seeds that nothing would add: of a search, which makes no claims, or no more than there are."""
    if header is None or header.max_seeds is None:
        return
    path, count = ("study", "max_seeds"), len(design.combined_factors[SEED])
    if "search" in diagnostics.document.data:
        diagnostics.report_error(path, "a search adds no seeds: it makes no claims")
    elif header.max_seeds <= count:
        diagnostics.report_error(
            path, f"expected more than the {plural(count, 'seed')} of [factors], got {header.max_seeds}"
        )
