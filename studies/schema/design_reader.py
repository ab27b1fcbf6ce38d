"""Reader of the design from [study] and [[cells]], with checks against the factors.

The fit of levels and holes is checked later, when all levels are tried.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...diagnostics import nearest_hint
from ..catalog.metrics import METRICS_AND_COSTS, find_metric, metric_family, unknown_metric
from ..catalog.targets import is_target
from ..designs import MAX_FACTORS, MAX_SCREENED
from ..text.document import Diagnostics
from ..text.strict_model import format_value
from ..text.toml_positions import KeyPath
from ..text.units import plural
from .design import STEPWISE, Design, MatchedSize, level_key
from .factors import (
    ABSENT,
    CONDITIONS_TABLE,
    SEED,
    Conditions,
    describe_condition,
    expand_table_levels,
    is_name,
    level_fault,
    read_conditions,
    read_factors,
    settled,
)
from .level_names import NamedLevels
from .settings import Level, StudySettings

RESOLUTIONS = {"III": 3, "IV": 4, "V": 5}
"""The resolutions of fractions, in the usual Roman numerals."""

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
"""The [study] keys that belong to a design."""


def _misplaced_keys(header: StudySettings) -> Iterator[tuple[KeyPath, str]]:
    for key, designs in _DESIGNS_WITH.items():
        if key in header.model_fields_set and header.design not in designs:
            names = " and ".join(f'"{name}"' for name in designs)
            yield ("study", key), f'{key} needs design = {names}, got "{header.design}"'


def _missing_keys(header: StudySettings) -> Iterator[tuple[KeyPath, str]]:
    for key, example in _REQUIRED.items():
        if header.design in _DESIGNS_WITH[key] and getattr(header, key) is None:
            yield _DESIGN_PATH, f"{header.design} needs {key}, for example {key} = {example}"


def _fitting_faults(design: Design) -> Iterator[tuple[KeyPath, str]]:
    inner = design.inner
    if design.conditions and design.kind in _WHOLE:
        yield ("when",), f"in a design of {design.kind} every factor is in every cell"
    match design.kind:
        case "zip":
            if len({len(levels) for levels in inner.values()}) > 1:
                lengths = ", ".join(f"{name} has {len(levels)}" for name, levels in inner.items())
                yield _DESIGN_PATH, f"zip needs factors with equally many levels, but {lengths}"
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
    """Yield faults for cells of a zip that differ only in labels, or not at all."""
    met: dict[tuple[str, ...], int] = {}
    for number, row in enumerate(design.rows()):
        key = tuple(level_key(level) for name, level in row.items() if name not in design.labels)
        if key and met.setdefault(key, number) != number:
            place = ("factors", next(iter(row)), number)
            yield place, f"cell {number + 1} of the zip repeats cell {met[key] + 1}"


def _cumulative_faults(design: Design) -> Iterator[tuple[KeyPath, str]]:
    """Yield faults for factors with several levels but no target, and factors that end where they begin."""
    for name, levels in design.inner.items():
        if name not in design.target and len(levels) > 2:
            example = f"target = {{ {name} = … }}"
            yield ("factors", name), f"expected two levels, or a target level in {example}, got {len(levels)}"
    if not all(design.factors.values()):  # which is a fault of its own
        return
    start = {name: design.baseline_level(name) for name in design.inner}
    for name, condition in design.conditions.items():
        order = list(start)
        late = [each for each in condition if each in start and order.index(each) > order.index(name)]
        if name in start and late:
            yield ("factors", name), f"expected it after {' and '.join(late)}, on which it depends"
    for name, level in design.target.items():
        if name in design.around:
            yield (*TARGET_PATH, name), f"{name} crosses the design: it cannot have a target level"
        elif name in design.factors and level_key(level) == level_key(design.baseline_level(name)):
            yield (*TARGET_PATH, name), f"expected a level of {name} other than the baseline's"


def _path_faults(design: Design) -> Iterator[tuple[KeyPath, str]]:
    path: KeyPath = ("study", "metric")
    if design.matched_size is not None:
        yield ("study", "match"), "a path changes one factor at a time, without solving for a size"
    if design.metric and metric_family(design.metric) not in METRICS_AND_COSTS:
        yield path, unknown_metric(design.metric)
    elif is_target(design.metric):
        message = f"a path compares final values, but {design.metric} is computed from a learning curve"
        yield path, message
    elif design.metric and not design.direction and find_metric(design.metric).higher_is_better is None:
        yield path, f"{design.metric} has no better direction: set direction = 'max' or 'min'"


def _sample_faults(design: Design) -> Iterator[tuple[KeyPath, str]]:
    """Yield faults for more cells than a grid has, and for a hypercube that is not found."""
    size = math.prod(map(len, design.inner.values()))
    if design.sample_cells > size:
        yield (
            ("study", "cells"),
            f"expected at most {size:,}, all cells of the grid, got {design.sample_cells:,}",
        )
    elif design.kind == "random" and (found := len(design.rows())) < design.sample_cells:
        message = f"found {found:,} different cells, since some factors are conditional"
        yield ("study", "cells"), f"{message}, got {design.sample_cells:,}"
    elif design.kind == "latin_hypercube" and design.sample_cells > 0 and not design.rows():
        message = f"found no hypercube of {design.sample_cells:,} different cells in a grid of {size:,}"
        yield ("study", "cells"), f'{message}: request fewer, or set design = "random"'


def check_max_seeds(diagnostics: Diagnostics, header: StudySettings | None, design: Design) -> None:
    """Report a `max_seeds` without effect: in a search, which has no claims, or not above the seeds."""
    if header is None or header.max_seeds is None:
        return
    path, count = ("study", "max_seeds"), len(design.combined_factors[SEED])
    if "search" in diagnostics.data:
        diagnostics.report(path, "a search adds no seeds: it makes no claims")
    elif header.max_seeds <= count:
        diagnostics.report(
            path, f"expected more than the {plural(count, 'seed')} of [factors], got {header.max_seeds}"
        )


TABLE = "cells"
BASELINE_PATH: KeyPath = ("study", "baseline")


def read_design(diagnostics: Diagnostics, header: StudySettings | None) -> Design:
    """Return the design of a study; report and drop faulty parts.

    A study without factors gets those of its cells, in order of appearance. A cell has the baseline's level
    of each factor that it does not name.
    """
    return _DesignReader(diagnostics, header or StudySettings(name="unread", title="unread")).design()


class _DesignReader:
    """Reader of a study's design from [study], [factors], [when] and [[cells]]."""

    def __init__(self, diagnostics: Diagnostics, header: StudySettings) -> None:
        self.diagnostics, self.header = diagnostics, header
        self.table_levels = expand_table_levels(diagnostics)
        in_step = header.design == "zip"
        self.factors = read_factors(diagnostics, lambda name: in_step and name not in (SEED, *header.around))
        self.crossed = {name: levels for name, levels in self.factors.items() if name != SEED}
        tables = diagnostics.data.get(TABLE, [])
        if not isinstance(tables, list) or not all(isinstance(table, Mapping) for table in tables):
            diagnostics.report((TABLE,), f"expected [[cells]], got {format_value(tables)}")
            tables = []
        self.tables: list[Mapping[str, Any]] = tables
        listed = dict.fromkeys(name for table in tables for name in table if name != SEED)
        self.names = tuple(self.crossed or listed)
        self.levels = {
            name: NamedLevels(
                (*self.crossed.get(name, ()), *(table[name] for table in tables if name in table)),
                f"of {name}",
            )
            for name in self.names
        }

    def design(self) -> Design:
        """Return the design; if its kind does not fit the factors, one of a kind that does."""
        header = self.header
        # the baseline of a search is a point, which is checked once the dimensions are known
        named = {} if self.diagnostics.has_search else header.baseline
        sizes = self._sizes() if header.match else {}
        baseline = self._named_levels(BASELINE_PATH, named, sizes)
        around = self._around()
        conditions = {
            name: {other: tuple(self._find(other, each) for each in of) for other, of in condition.items()}
            for name, condition in read_conditions(self.diagnostics, self.names, around).items()
        }
        labels = self._labels()
        listed = self._listed_cells(baseline, conditions, labels)
        design = Design(
            kind=header.design,
            combined_factors=self.factors,
            table_levels=self.table_levels,
            listed_cells=listed,
            baseline=baseline,
            matched_size=self._matched_size(),
            around=around,
            conditions=conditions,
            labels=labels,
            metric=header.metric or "",
            direction=header.direction or "",
            target=self._named_levels(TARGET_PATH, header.target),
            resolution=RESOLUTIONS.get(header.resolution or "", 0),
            sample_cells=header.cells or 0,
            sample_seed=header.design_seed or 0,
        )
        self._check_levels(design)
        for path, message in _misplaced_keys(header):
            self.diagnostics.report(path, message, key=True)
        faults = [*_missing_keys(header), *_fitting_faults(design)]
        for path, message in faults:
            self.diagnostics.report(path, message)
        self._check_search(listed)
        if not faults:
            return design
        return replace(design, kind="grid" if design.kind == "zip" else "one_at_a_time")

    def _find(self, factor: str, name: Level) -> Level:
        """Return the level for a name; an unknown name is returned unchanged."""
        levels = self.levels.get(factor)
        return levels.find(name) if levels and levels.has(name) else name

    def _named_levels(
        self, path: KeyPath, named: Mapping[str, Level], others: Collection[str] = ()
    ) -> dict[str, Level]:
        """Return the named levels by factor; report names that match no level."""
        return {
            name: self._find(name, level)
            for name, level in named.items()
            if name not in others and self._is_level((*path, name), level)
        }

    def _is_level(self, path: KeyPath, level: object) -> bool:
        """Return whether a key is a factor's name and its value a valid level; report it if not."""
        name = str(path[-1])
        if name == SEED:
            self.diagnostics.report(path, "seeds cross every cell: list them in [factors]", key=True)
        elif name not in self.names:
            near = nearest_hint(name, self.names)
            self.diagnostics.report(path, f"unknown factor '{name}'{near}", key=True)
        elif not is_name(self.diagnostics, path):
            pass
        elif message := level_fault(name, level):
            self.diagnostics.report_invalid(path, message)
        else:
            return True
        return False

    def _around(self) -> tuple[str, ...]:
        """Return the factors that cross the design; report and drop invalid ones."""
        names, path = self.header.around, ("study", "around")
        if names and self.header.design == "grid":
            message = "a grid crosses all of its factors: around needs another design"
            self.diagnostics.report(path, message)
            return ()
        for name in names:
            if name == SEED:
                self.diagnostics.report(path, "seeds cross every cell already")
            elif name not in self.crossed:
                near = nearest_hint(name, self.crossed)
                self.diagnostics.report(path, f"unknown factor '{name}'{near}")
        return tuple(dict.fromkeys(name for name in names if name in self.crossed))

    def _labels(self) -> tuple[str, ...]:
        """Return the factors that only label cells; report and drop invalid ones."""
        header, path = self.header, ("study", "labels")
        for name in header.labels:
            if name not in self.names:
                near = nearest_hint(name, self.names)
                self.diagnostics.report(path, f"unknown factor '{name}'{near}")
            elif name in self.crossed and (header.design != "zip" or name in header.around):
                message = f"{name} would give the same trials other names"
                self.diagnostics.report(
                    path, f'{message}: a label needs other factors in a "zip" or in [[cells]]'
                )
        return tuple(dict.fromkeys(name for name in header.labels if name in self.names))

    def _listed_cells(
        self, baseline: Mapping[str, Level], conditions: Conditions, labels: Collection[str]
    ) -> dict[int, dict[str, Level]]:
        """Return the cells of [[cells]] that have a level for each factor without one in the baseline.

        Unknown factors, invalid levels, levels of absent factors, and duplicate cells are reported.
        """
        listed: dict[int, dict[str, Level]] = {}
        seen: set[tuple[str, ...]] = set()
        for index, table in enumerate(self.tables):
            path: KeyPath = (TABLE, index)
            cell = settled(conditions, {name: {**baseline, **table}.get(name, True) for name in self.names})
            fits = [self._is_level((*path, name), level) for name, level in table.items()]
            absent = [name for name, level in cell.items() if level == ABSENT]
            missing = [name for name in cell if name not in (*table, *baseline, *absent)]
            for name in missing:
                self.diagnostics.report(path, f"missing factor '{name}'")
            extra = [name for name in absent if name in table and name in conditions]
            for name in extra:
                message = f"{name} is absent here; it exists only with {describe_condition(conditions[name])}"
                self.diagnostics.report((*path, name), message, key=True)
            if all(fits) and not missing and not extra:
                listed[index] = cell
                key = tuple(level_key(level) for name, level in cell.items() if name not in labels)
                if key in seen:
                    self.diagnostics.report(path, "this cell is listed twice")
                seen.add(key)
        return listed

    def _sizes(self) -> dict[str, int | float]:
        """Return the numbers in the baseline whose names are not factors."""
        baseline = self.header.baseline
        others = {name: value for name, value in baseline.items() if name not in (*self.names, SEED)}
        return {name: value for name, value in others.items() if type(value) in (int, float)}  # not bool

    def _matched_size(self) -> MatchedSize | None:
        """Return the size that `match` solves: the only baseline name without a factor.

        None without `match`. A fault is reported unless there is exactly one such name, with an integer.
        """
        if not self.header.match:
            if "tolerance" in self.header.model_fields_set:
                self.diagnostics.report(("study", "tolerance"), "only match has a tolerance", key=True)
            return None
        match list(self._sizes().items()):
            case [(name, int(value))]:
                return MatchedSize(name=name, size=value, costs=self.header.match)
            case [(name, value)]:
                message = f"expected a whole number, got {format_value(value)}"
                self.diagnostics.report((*BASELINE_PATH, name), message)
            case []:
                message = 'match needs a size to solve for, such as baseline = { mixer = "sa", filter = 512 }'
                self.diagnostics.report(("study", "match"), message)
            case several:
                names = ", ".join(name for name, _ in several)
                self.diagnostics.report(BASELINE_PATH, f"match solves one size, got {names}")
        return None

    def _check_levels(self, design: Design) -> None:
        """Report levels of the baseline, the target and conditions that their factors do not have."""
        named = [(BASELINE_PATH, *item) for item in design.baseline.items()]
        named += [(TARGET_PATH, *item) for item in design.target.items()]
        for name, condition in design.conditions.items():
            named += [
                ((CONDITIONS_TABLE, name), other, each) for other, of in condition.items() for each in of
            ]
        for path, name, level in named:
            if name in design.factors:
                try:
                    NamedLevels(design.factors[name], f"of {name}").find(level)
                except ValueError as error:
                    self.diagnostics.report((*path, name), str(error))

    def _check_search(self, listed: Collection[int]) -> None:
        """Report keys and cells of a grid in a study with a search."""
        given = self.header.model_fields_set
        if not self.diagnostics.has_search:
            if self.header.baseline_seeds is not None:
                message = "only the baseline of a search has seeds of its own"
                self.diagnostics.report(("study", "baseline_seeds"), message, key=True)
            return
        for key in ("design", *DESIGN_KEYS, "ablate", "match", "order"):
            if key in given:
                message = f"a search chooses its points: {key} belongs to a grid"
                self.diagnostics.report(("study", key), message, key=True)
        if listed:
            message = "a search chooses its points: cells belong to a grid"
            self.diagnostics.report((TABLE,), message, key=True)
