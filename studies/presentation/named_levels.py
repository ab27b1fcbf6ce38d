"""The levels that a table or a figure names, in place of the names by which it calls them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ..schema.design import Design
from ..schema.level_names import NamedLevels, level_text
from ..schema.settings import Level
from ..text.strict_model import StrictModel
from .curve import CurveSpec
from .scores import ScoresSpec, task_names
from .selection import selected_levels
from .table import TableSpec

SpecT = TypeVar("SpecT", bound=StrictModel)

_Levels = Mapping[str, tuple[Level, ...]]


def with_levels(spec: SpecT, design: Design) -> SpecT:
    """Return a table or a figure with the levels that its names stand for.

    `select = { mixer = "sa" }` becomes the level `sa(heads=4)` if no other level can be meant. A name that
    stands for no level, or for several, stays: the checks of the specification report it.
    """
    known = design.known_levels
    updates: dict[str, Any] = {}
    select: Mapping[str, Any] = getattr(spec, "select", {})
    if select:
        updates["select"] = {name: _find(kept, known.get(name, ())) for name, kept in select.items()}
    levels = selected_levels(updates.get("select", {}), known)
    for key, factor in _single_levels(spec):
        if (name := getattr(spec, key)) is not None:
            updates[key] = _find(name, levels.get(factor or "", ()))
    if isinstance(spec, TableSpec):
        updates |= _of_table(spec, levels, known)
    if isinstance(spec, ScoresSpec):
        tasks = task_names(spec, known) if all(name in known for name in spec.tasks) else ()
        updates["bounds"] = {_column_text(name, tasks): bounds for name, bounds in spec.bounds.items()}
    return spec.model_copy(update=updates)


def _single_levels(spec: StrictModel) -> Sequence[tuple[str, str | None]]:
    """The keys that are one level each, with the factors that they are levels of."""
    accented = spec.accent_factor if isinstance(spec, CurveSpec) else getattr(spec, "series", None)
    factors = {"accent": accented, "baseline": getattr(spec, "rows", None)}
    return [(key, factor) for key, factor in factors.items() if key in type(spec).model_fields]


def _of_table(spec: TableSpec, levels: _Levels, known: _Levels) -> dict[str, Any]:
    """The levels of a baseline of changes, under headings, and beside names of the paper."""
    rows, columns = levels.get(spec.rows, ()), levels.get(spec.columns or "", ())
    groups, published = spec.groups, spec.published
    row_texts, column_texts = (
        tuple(map(level_text, known.get(name or "", ()))) for name in (spec.rows, spec.columns)
    )
    updates: dict[str, Any] = {
        "groups": groups.model_copy(
            update={
                "rows": {heading: _find(named, rows) for heading, named in groups.rows.items()},
                "columns": {heading: _find(named, columns) for heading, named in groups.columns.items()},
            }
        ),
        "published": published.model_copy(
            update={
                "rows": {_find(name, row_texts): their for name, their in published.rows.items()},
                "columns": {
                    _column_text(name, column_texts): their for name, their in published.columns.items()
                },
            }
        ),
    }
    if isinstance(spec.baseline, Mapping):
        updates["baseline"] = {
            name: _find(level, known.get(name, ())) for name, level in spec.baseline.items()
        }
    return updates


def _column_text(name: str, texts: Sequence[str]) -> str:
    """A column as it is called inside: a level, a metric, or `metric:level`."""
    metric, colon, level = name.partition(":")
    return f"{metric}:{_find(level, texts)}" if colon else str(_find(name, texts))


def _find(named: Any, levels: Sequence[Level]) -> Any:  # noqa: ANN401 -- TOML holds anything
    """The level that is named, or the list of them; a name that stands for none stays."""
    names = NamedLevels(levels, "here")
    if isinstance(named, list):
        return [names.find(each) if names.has(each) else each for each in named]
    return names.find(named) if names.has(named) else named
