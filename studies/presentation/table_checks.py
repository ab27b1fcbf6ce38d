"""Whether a table fits its study: known factors, levels and metrics, and no factors mixed by accident."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...diagnostics import nearest_hint
from ..catalog.metrics import ANALYTIC_COSTS, METRICS_AND_COSTS, find_metric, metric_family, unknown_metric
from ..catalog.published import published_tables
from ..schema.design import Design
from ..schema.factors import SEED
from ..schema.level_names import level_text
from ..schema.settings import Level
from ..text.pydantic_messages import format_value
from ..text.toml_positions import KeyPath
from .changes import CHANGES, change_faults, unselected_baseline_faults
from .metric_checks import metric_faults
from .selection import describe_mixed_levels, level_name_fault, select_faults, selected_levels
from .table import TableSpec

KeyFault = tuple[KeyPath, str]
"""The path of a key in a table, and what is wrong with its value."""


def table_faults(spec: TableSpec, design: Design, paper: str | None) -> list[KeyFault]:
    """Everything in a table's specification that does not fit a study of this design.

    It may name levels that overrides have removed; these are just not shown.
    """
    factors = design.known_levels
    faults = [*_factor_faults(spec, factors), *select_faults(spec.select, factors)]
    levels = factors if faults else selected_levels(spec.select, factors)
    if spec.against is not None and spec.rows != CHANGES:
        faults.append((("against",), f'expected rows = "{CHANGES}", got rows of {spec.rows}'))
    if spec.rows == CHANGES:
        faults += change_faults(spec, design)
        if not faults:
            faults += unselected_baseline_faults(spec, design)
    elif not faults:
        faults += _mixed_level_faults(spec, design)
    if spec.rows == CHANGES and (spec.columns is None or spec.columns in factors):
        faults += _group_faults(spec, levels)
    if spec.rows in factors and (spec.columns is None or spec.columns in factors):
        faults += [*_baseline_faults(spec, levels), *_group_faults(spec, levels)]
    faults += [*_significance_faults(spec), *_margin_faults(spec)]
    return [*faults, *_metric_faults(spec), *_published_faults(spec, factors, paper)]


def _factor_faults(spec: TableSpec, factors: Mapping[str, tuple[Level, ...]]) -> Iterator[KeyFault]:
    """Names that are not factors, and factors named twice."""
    met: dict[str, str] = {}
    places: list[tuple[KeyPath, str]] = [(("rows",), spec.rows)]
    if spec.columns is not None:
        places.append((("columns",), spec.columns))
    places += [(("over", number), factor) for number, factor in enumerate(spec.over)]
    for path, factor in places:
        known = (*factors, CHANGES) if path == ("rows",) else tuple(factors)
        if factor not in known:
            yield path, f"unknown factor '{factor}'{nearest_hint(factor, known)}"
        if factor in met:
            yield path, f"expected a factor other than {met[factor]}, got '{factor}'"
        met.setdefault(factor, "the rows'" if path[0] == "rows" else "the columns'")
    if SEED in spec.over:
        yield ("over", spec.over.index(SEED)), "every cell is aggregated over its seeds already"
    if spec.pick and not spec.over:
        yield ("pick",), 'expected factors to pick from, as in over = "lr"'


def _mixed_level_faults(spec: TableSpec, design: Design) -> Iterator[KeyFault]:
    """The factors, with their levels, that a cell of the table would mix by accident."""
    shown = [name for name in (spec.rows, spec.columns, *spec.over) if name is not None]
    if mixed := describe_mixed_levels(shown, spec.select, design):
        key = "rows" if spec.columns is None else "columns"
        yield (key,), f"expected every other factor but {SEED} to have one level, got {mixed}"


def _baseline_faults(spec: TableSpec, levels: Mapping[str, tuple[Level, ...]]) -> Iterator[KeyFault]:
    """A baseline that is not a row, and a second kind of differences beside its own."""
    if spec.baseline is None:
        return
    if message := level_name_fault(spec.baseline, levels[spec.rows], spec.rows):
        yield ("baseline",), message
    if spec.published.show == "difference":
        path = ("published", "show")
        yield path, "expected below or columns, since differences are from the baseline, got difference"


def _significance_faults(spec: TableSpec) -> Iterator[KeyFault]:
    """Stars or p without differences that have any."""
    if spec.significance == "star":
        return
    asked = f'significance = "{spec.significance}"'
    if spec.baseline is None and spec.rows != CHANGES:
        yield ("significance",), f"expected a baseline beside {asked}, which is of differences from it"
    elif spec.center != "mean" and spec.significance != "none":
        yield ("significance",), f'expected center = "mean" beside {asked}, got "{spec.center}"'


def _margin_faults(spec: TableSpec) -> Iterator[KeyFault]:
    """A smallest difference where no difference is tested, or of a metric that is not shown."""
    path: KeyPath = ("smallest_difference",)
    if not spec.smallest_difference:
        return
    if spec.baseline is None and spec.rows != CHANGES and spec.best != "test":
        yield path, f'expected a baseline, rows = "{CHANGES}" or best = "test" beside it: nothing is compared'
    if spec.center != "mean":
        yield path, f'expected center = "mean" beside it, got "{spec.center}"'
    if spec.pick is not None:
        yield path, "expected no pick, which would choose among levels anew with each seed"
    for name in spec.smallest_difference:
        if name not in spec.value:
            yield path, f"expected a metric of value, got '{name}'{nearest_hint(name, spec.value)}"
        elif name in ANALYTIC_COSTS:
            yield path, f"{name} is computed, not measured: no seed would tell more"


def _group_faults(spec: TableSpec, levels: Mapping[str, tuple[Level, ...]]) -> Iterator[KeyFault]:
    """Unknown levels under a heading, and levels under two headings.

    The members of a heading over columns are metrics if metrics alone are columns.
    """
    columns = levels[spec.columns] if spec.columns else spec.value
    for side, groups, known, factor in (
        ("rows", spec.groups.rows, levels.get(spec.rows, ()), spec.rows),
        ("columns", spec.groups.columns, columns, spec.columns or "value"),
    ):
        met: dict[str, str] = {}
        for heading, members in groups.items():
            for number, level in enumerate(members):
                place = ("groups", side, heading, number)
                if message := level_name_fault(level, known, factor):
                    yield place, message
                elif level_text(level) in met:
                    yield place, f"{format_value(level)} is in the group '{met[level_text(level)]}' already"
                else:
                    met[level_text(level)] = heading


def _metric_faults(spec: TableSpec) -> Iterator[KeyFault]:
    """Unknown metrics, and one that cannot decide which level is best."""
    yield from metric_faults(spec.value, spec.digits, [spec.otherwise] if spec.otherwise else [])
    first = spec.value[0]
    if (
        spec.pick
        and metric_family(first) in METRICS_AND_COSTS
        and find_metric(first).higher_is_better is None
    ):
        yield ("pick",), f"expected a metric with a better direction, got '{first}'"
    yield from _otherwise_faults(spec)


def _otherwise_faults(spec: TableSpec) -> Iterator[KeyFault]:
    """A metric in place of `value` that is unknown, undecided, ambiguous or shown already."""
    path: KeyPath = ("otherwise",)
    if spec.otherwise is None:
        return
    if metric_family(spec.otherwise) not in METRICS_AND_COSTS:
        yield path, unknown_metric(spec.otherwise)
    elif spec.pick and find_metric(spec.otherwise).higher_is_better is None:
        yield path, f"expected a metric with a better direction, got '{spec.otherwise}'"
    if spec.otherwise in spec.value:
        yield path, f"expected a metric other than value, got '{spec.otherwise}'"
    if len(spec.value) > 1:
        yield path, f"expected one metric in value, in place of which it is shown, got {len(spec.value)}"
    if spec.baseline is not None:
        yield path, "expected no baseline, whose differences are in parentheses too"


def _published_faults(
    spec: TableSpec, factors: Mapping[str, tuple[Level, ...]], paper: str | None
) -> Iterator[KeyFault]:
    """An unknown table of the paper, and unknown rows and columns of that table or of ours.

    Without a table's name it is that of our table, which must be one where rows or columns are named. These
    names are only checked if the table is known.
    """
    tables = {name: table for (known, name), table in published_tables().items() if known == paper}
    named = spec.published.table is not None or spec.published.rows or spec.published.columns
    if named and spec.published_table not in tables:
        unknown = f"no published table '{spec.published_table}' of {paper or 'a paper: [study] names none'}"
        yield ("published",), unknown + nearest_hint(spec.published_table, tables)
    if spec.published_table not in tables or spec.rows not in factors:
        return
    table, columns = tables[spec.published_table], list(spec.value)
    if spec.columns is not None and spec.columns in factors:
        texts = [level_text(level) for level in factors[spec.columns]]
        columns += [*texts, *(f"{name}:{text}" for name in spec.value for text in texts)]
    rows = list(map(level_text, factors[spec.rows]))
    sides = (
        ("row", spec.published.rows, rows, table.rows),
        ("column", spec.published.columns, columns, table.columns),
    )
    for side, names, ours, theirs in sides:
        for our, their in names.items():
            path = ("published", f"{side}s", our)
            if our not in ours:
                yield path, f"no {side} '{our}'{nearest_hint(our, ours)}"
            if their not in theirs:
                unknown = f"{table.paper} {table.name} has no {side} '{their}'"
                yield path, unknown + nearest_hint(their, theirs)
