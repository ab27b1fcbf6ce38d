"""Reads the design from [study] and [[cells]], and checks it against the factors.

Whether levels fit the holes that they fill is checked later, when all of them are tried.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ...diagnostics import nearest_hint
from ..text.diagnostics import Diagnostics
from ..text.pydantic_messages import format_value
from ..text.toml_positions import KeyPath
from .conditions import TABLE as CONDITIONS
from .conditions import Conditions, describe_condition, read_conditions, settled
from .design import Design, level_key
from .design_checks import DESIGN_KEYS, RESOLUTIONS, TARGET_PATH, check_design, read_around, read_labels
from .factors import ABSENT, SEED, is_name, level_fault, read_factors
from .level_names import NamedLevels
from .settings import Level, StudySettings
from .table_levels import expand_table_levels

TABLE = "cells"
BASELINE_PATH: KeyPath = ("study", "baseline")


def read_design(diagnostics: Diagnostics, header: StudySettings | None) -> Design:
    """Return the design of a study; report and drop faulty parts.

    A study without factors has those that its cells name, in the order of appearance. A cell has the
    baseline's level of each factor that it does not name.
    """
    table_levels = expand_table_levels(diagnostics)
    said = header or StudySettings(name="unread", title="unread")
    in_step = said.design == "zip"
    factors = read_factors(diagnostics, lambda name: in_step and name not in (SEED, *said.around))
    crossed = {name: levels for name, levels in factors.items() if name != SEED}
    tables = _tables(diagnostics)
    names = tuple(crossed or dict.fromkeys(name for table in tables for name in table if name != SEED))
    levels = {
        name: NamedLevels(
            (*crossed.get(name, ()), *(table[name] for table in tables if name in table)), f"of {name}"
        )
        for name in names
    }
    baseline = _with_levels(_baseline(diagnostics, header, names), levels)
    around = read_around(diagnostics, header, crossed)
    conditions = {
        name: {other: tuple(_find(levels, other, level) for level in of) for other, of in condition.items()}
        for name, condition in read_conditions(diagnostics, names, around).items()
    }
    labels = read_labels(diagnostics, header, crossed, names)
    cells = [
        settled(conditions, {name: {**baseline, **table}.get(name, True) for name in names})
        for table in tables
    ]
    listed = {
        index: cell
        for index, (table, cell) in enumerate(zip(tables, cells, strict=True))
        if _is_cell(diagnostics, (TABLE, index), table, cell, baseline=baseline, conditions=conditions)
    }
    _check_repeated(diagnostics, listed, labels)
    design = Design(
        kind=said.design,
        combined_factors=factors,
        table_levels=table_levels,
        listed_cells=listed,
        baseline=baseline,
        matched_size=_size(diagnostics, header, names),
        around=around,
        conditions=conditions,
        labels=labels,
        metric=said.metric or "",
        direction=said.direction or "",
        target=_with_levels(_target(diagnostics, header, names), levels),
        resolution=RESOLUTIONS.get(said.resolution or "", 0),
        sample_cells=said.cells or 0,
        sample_seed=said.design_seed or 0,
    )
    _check_levels(diagnostics, design)
    if header is not None:
        design = check_design(diagnostics, header, design)
    _check_search(diagnostics, header, listed)
    return design


def _with_levels(named: Mapping[str, Level], levels: Mapping[str, NamedLevels]) -> dict[str, Level]:
    """Return the levels that names of levels stand for, by factor; an unknown name stays."""
    return {factor: _find(levels, factor, level) for factor, level in named.items()}


def _find(levels: Mapping[str, NamedLevels], factor: str, name: Level) -> Level:
    return levels[factor].find(name) if factor in levels and levels[factor].has(name) else name


def _check_repeated(
    diagnostics: Diagnostics, listed: Mapping[int, Mapping[str, Level]], labels: Collection[str]
) -> None:
    """Note cells that are listed a second time, whatever their labels."""
    seen: set[tuple[str, ...]] = set()
    for index, cell in listed.items():
        key = tuple(level_key(level) for name, level in cell.items() if name not in labels)
        if key in seen:
            diagnostics.report_error((TABLE, index), "this cell is listed twice")
        seen.add(key)


def _tables(diagnostics: Diagnostics) -> list[Mapping[str, Any]]:
    """Return the tables of [[cells]]; none of them if one is not a table."""
    tables = diagnostics.document.data.get(TABLE, [])
    if isinstance(tables, list) and all(isinstance(table, Mapping) for table in tables):
        return tables
    diagnostics.report_error((TABLE,), f"expected [[cells]], got {format_value(tables)}")
    return []


def _is_level(diagnostics: Diagnostics, path: KeyPath, level: object, names: Collection[str]) -> bool:
    """Return whether a key is a factor's name and its value can be a level of it; report it if not."""
    name = str(path[-1])
    if name == SEED:
        diagnostics.report_error(path, "seeds cross every cell: list them in [factors]", key=True)
    elif name not in names:
        diagnostics.report_error(path, f"unknown factor '{name}'{nearest_hint(name, names)}", key=True)
    elif not is_name(diagnostics, path):
        pass
    elif message := level_fault(name, level):
        diagnostics.report_invalid(path, message)
    else:
        return True
    return False


def _is_cell(
    diagnostics: Diagnostics,
    path: KeyPath,
    table: Mapping[str, Any],
    cell: Mapping[str, Level],
    *,
    baseline: Collection[str],
    conditions: Conditions,
) -> bool:
    """Return whether a table of [[cells]] has a level for each factor without one in the baseline.

    Reports unknown factors, invalid levels and those of absent factors, each at its key or value.
    """
    fits = [_is_level(diagnostics, (*path, name), level, cell) for name, level in table.items()]
    absent = [name for name, level in cell.items() if level == ABSENT]
    missing = [name for name in cell if name not in (*table, *baseline, *absent)]
    for name in missing:
        diagnostics.report_error(path, f"missing factor '{name}'")
    extra = [name for name in absent if name in table and name in conditions]
    for name in extra:
        message = f"{name} is not there: that is where {describe_condition(conditions[name])}"
        diagnostics.report_error((*path, name), message, key=True)
    return all(fits) and not missing and not extra


def _baseline(
    diagnostics: Diagnostics, header: StudySettings | None, names: Collection[str]
) -> dict[str, Level]:
    """Return the levels of factors in the baseline.

    Reports other names, unless `match` is given and they have a number, which may be the size to solve.
    """
    if diagnostics.has_search:
        return {}  # a point, which is checked once the dimensions are known
    sizes = _sizes(header, names) if header and header.match else {}
    return {
        name: level
        for name, level in (header.baseline if header else {}).items()
        if name not in sizes and _is_level(diagnostics, (*BASELINE_PATH, name), level, names)
    }


def _target(
    diagnostics: Diagnostics, header: StudySettings | None, names: Collection[str]
) -> dict[str, Level]:
    """Return the levels of factors at the end of a design; report what is no level of a factor."""
    return {
        name: level
        for name, level in (header.target if header else {}).items()
        if _is_level(diagnostics, (*TARGET_PATH, name), level, names)
    }


def _sizes(header: StudySettings, names: Collection[str]) -> dict[str, int | float]:
    """Return the numbers in the baseline whose names are not factors."""
    others = {name: value for name, value in header.baseline.items() if name not in (*names, SEED)}
    return {name: value for name, value in others.items() if type(value) in (int, float)}  # not bool


def _size(
    diagnostics: Diagnostics, header: StudySettings | None, names: Collection[str]
) -> tuple[str, int] | None:
    """Return the size that `match` solves.

    It is the one name of the baseline that is not a factor, with its value. Returns None without `match`;
    reports it if there is not exactly one with an integer.
    """
    if header is None or header.match is None:
        if header and "tolerance" in header.model_fields_set:
            diagnostics.report_error(("study", "tolerance"), "only match has a tolerance", key=True)
        return None
    match list(_sizes(header, names).items()):
        case [(name, int(value))]:
            return name, value
        case [(name, value)]:
            diagnostics.report_error(
                (*BASELINE_PATH, name), f"expected a whole number, got {format_value(value)}"
            )
        case []:
            message = 'match needs a size to solve, as in baseline = { mixer = "sa", filter = 512 }'
            diagnostics.report_error(("study", "match"), message)
        case several:
            names = ", ".join(name for name, _ in several)
            diagnostics.report_error(BASELINE_PATH, f"match solves one size, got {names}")
    return None


def _check_levels(diagnostics: Diagnostics, design: Design) -> None:
    """Note levels of the baseline and of the target that their factors do not have."""
    factors = design.factors
    named = [(BASELINE_PATH, *item) for item in design.baseline.items()]
    named += [(TARGET_PATH, *item) for item in design.target.items()]
    for name, condition in design.conditions.items():
        named += [
            ((CONDITIONS, name), other, level) for other, levels in condition.items() for level in levels
        ]
    for path, name, level in named:
        if name in factors:
            try:
                NamedLevels(factors[name], f"of {name}").find(level)
            except ValueError as error:
                diagnostics.report_error((*path, name), str(error))


def _check_search(diagnostics: Diagnostics, header: StudySettings | None, listed: Collection[int]) -> None:
    """Note keys and cells of a grid in a study whose points a search chooses."""
    if not diagnostics.has_search or header is None:
        if header and header.baseline_seeds is not None:
            message = "only the baseline of a search has seeds of its own"
            diagnostics.report_error(("study", "baseline_seeds"), message, key=True)
        return
    for key in ("design", *DESIGN_KEYS, "ablate", "match", "order"):
        if key in header.model_fields_set:
            diagnostics.report_error(
                ("study", key), f"a search chooses its points: {key} belongs to a grid", key=True
            )
    if listed:
        diagnostics.report_error((TABLE,), "a search chooses its points: cells belong to a grid", key=True)
