"""Whether a table fits its study: known factors, levels and metrics, and nothing mixed without saying so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...diagnostics import nearest_hint
from ..catalog.metrics import METRICS_AND_COSTS, find_metric, metric_family
from ..catalog.published import published_tables
from ..text.pydantic_messages import format_value
from ..text.toml_positions import KeyPath
from .design import Design
from .factors import SEED
from .level_names import level_text
from .selection import describe_mixed_levels, select_faults, selected_levels, unknown_level_message
from .settings import Level
from .table import TableSpec

KeyFault = tuple[KeyPath, str]
"""The path of a key in a table, and what is wrong with its value."""


def table_faults(spec: TableSpec, design: Design, paper: str | None) -> list[KeyFault]:
    """Everything in a table's specification that does not fit a study of this design.

    It may name levels that overrides have removed: there is nothing of them to show.
    """
    factors = design.known_levels
    wrong = [*_factor_faults(spec, factors), *select_faults(spec.select, factors)]
    levels = factors if wrong else selected_levels(spec.select, factors)
    if not wrong:
        wrong += _mixed_level_faults(spec, design)
    if spec.rows in factors and (spec.columns is None or spec.columns in factors):
        wrong += [*_baseline_faults(spec, levels), *_group_faults(spec, levels)]
    wrong += _metric_faults(spec)
    return [*wrong, *_published_faults(spec, factors, paper)]


def _factor_faults(spec: TableSpec, factors: Mapping[str, tuple[Level, ...]]) -> Iterator[KeyFault]:
    """Names that are no factors, and a factor in two places."""
    met: dict[str, str] = {}
    places: list[tuple[KeyPath, str]] = [(("rows",), spec.rows)]
    if spec.columns is not None:
        places.append((("columns",), spec.columns))
    places += [(("over", number), factor) for number, factor in enumerate(spec.over)]
    for path, factor in places:
        if factor not in factors:
            yield path, f"unknown factor '{factor}'{nearest_hint(factor, factors)}"
        if factor in met:
            yield path, f"expected a factor other than {met[factor]}, got '{factor}'"
        met.setdefault(factor, "the rows'" if path[0] == "rows" else "the columns'")
    if SEED in spec.over:
        yield ("over", spec.over.index(SEED)), "every cell is over its seeds already"
    if spec.pick and not spec.over:
        yield ("pick",), 'expected factors to pick from, as in over = "lr"'


def _mixed_level_faults(spec: TableSpec, design: Design) -> Iterator[KeyFault]:
    """The factors, with their levels, that a cell of the table would mix without saying so."""
    places = [name for name in (spec.rows, spec.columns, *spec.over) if name is not None]
    if found := describe_mixed_levels(places, spec.select, design):
        key = "rows" if spec.columns is None else "columns"
        yield (key,), f"expected every other factor but {SEED} to have one level, got {found}"


def _baseline_faults(spec: TableSpec, levels: Mapping[str, tuple[Level, ...]]) -> Iterator[KeyFault]:
    """A baseline that is no row, and one whose differences would stand where others are asked for."""
    if spec.baseline is None:
        return
    if message := unknown_level_message(spec.baseline, levels[spec.rows]):
        yield ("baseline",), message
    if spec.published.show == "difference":
        yield ("published", "show"), "the differences from the baseline stand there"


def _group_faults(spec: TableSpec, levels: Mapping[str, tuple[Level, ...]]) -> Iterator[KeyFault]:
    """Levels under a heading that are none, or under two.

    The members of a heading over columns are metrics where metrics alone are columns.
    """
    columns = levels[spec.columns] if spec.columns else spec.value
    for side, groups, known in (
        ("rows", spec.groups.rows, levels[spec.rows]),
        ("columns", spec.groups.columns, columns),
    ):
        met: dict[str, str] = {}
        for heading, members in groups.items():
            for number, level in enumerate(members):
                place = ("groups", side, heading, number)
                if message := unknown_level_message(level, known):
                    yield place, message
                elif level_text(level) in met:
                    yield place, f"{format_value(level)} is in the group '{met[level_text(level)]}' already"
                else:
                    met[level_text(level)] = heading


def _metric_faults(spec: TableSpec) -> Iterator[KeyFault]:
    """Metrics that no trial has, and one that cannot tell which level is best.

    A metric with an index is known by its family.
    """
    for number, name in enumerate(spec.value):
        path: KeyPath = ("value",) if len(spec.value) == 1 else ("value", number)
        if metric_family(name) not in METRICS_AND_COSTS:
            yield path, f"unknown metric '{name}'{nearest_hint(name, METRICS_AND_COSTS)}"
        elif name in spec.value[:number]:
            yield path, f"the metric '{name}' is listed twice"
        elif number == 0 and spec.pick and find_metric(name).higher_is_better is None:
            yield ("pick",), f"neither side of '{name}' is better"
    yield from _otherwise_faults(spec)
    shows = {*spec.value, *([spec.otherwise] if spec.otherwise else [])}
    for name in spec.digits:
        if name not in shows:
            yield ("digits", name), f"unknown metric '{name}'{nearest_hint(name, shows)}"


def _otherwise_faults(spec: TableSpec) -> Iterator[KeyFault]:
    """A metric that would stand for others of which it cannot be told which it stands for."""
    path: KeyPath = ("otherwise",)
    if spec.otherwise is None:
        return
    if metric_family(spec.otherwise) not in METRICS_AND_COSTS:
        yield path, f"unknown metric '{spec.otherwise}'{nearest_hint(spec.otherwise, METRICS_AND_COSTS)}"
    elif spec.pick and find_metric(spec.otherwise).higher_is_better is None:
        yield path, f"neither side of '{spec.otherwise}' is better"
    if spec.otherwise in spec.value:
        yield path, f"the metric '{spec.otherwise}' stands there already"
    if len(spec.value) > 1:
        yield path, f"expected one metric in value, which it stands for, got {len(spec.value)}"
    if spec.baseline is not None:
        yield path, "the differences from the baseline stand in parentheses"


def _published_faults(
    spec: TableSpec, factors: Mapping[str, tuple[Level, ...]], paper: str | None
) -> Iterator[KeyFault]:
    """A table that the paper does not have, and names of it, or of ours, that are none.

    Names are only looked at where the table is known, since nothing could be said of them otherwise.
    """
    printed = {name: table for (known, name), table in published_tables().items() if known == paper}
    if spec.published.table is not None and spec.published.table not in printed:
        where = f"no published table '{spec.published.table}' of {paper or 'a paper: [study] names none'}"
        yield ("published",), where + nearest_hint(spec.published.table, printed)
    if spec.published_table not in printed or spec.rows not in factors:
        return
    table, ours = printed[spec.published_table], list(spec.value)
    if spec.columns is not None and spec.columns in factors:
        texts = [level_text(level) for level in factors[spec.columns]]
        ours += [*texts, *(f"{name}:{text}" for name in spec.value for text in texts)]
    rows = list(map(level_text, factors[spec.rows]))
    sides = (
        ("rows", spec.published.rows, rows, table.rows),
        ("columns", spec.published.columns, ours, table.columns),
    )
    for side, names, known, theirs in sides:
        for our, their in names.items():
            if our not in known:
                yield (
                    ("published", side, our),
                    f"no {side.removesuffix('s')} '{our}'{nearest_hint(our, known)}",
                )
            if their not in theirs:
                what = f"{table.paper} {table.name} has no {side.removesuffix('s')} '{their}'"
                yield ("published", side, our), what + nearest_hint(their, theirs)
