"""The courses of a population's members in a study file of their own: changes in [train], levels in cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...studies.population import read_course
from ...studies.resolve.template import HOLE_PATTERN
from ...studies.schema.settings import Level
from ...studies.study import Study

Cells = Mapping[str, Mapping[str, Level]]
"""What points are called, and their values by dimension."""


def lay_out_courses(study: Study, optimizer: Mapping[str, Any], cells: Cells) -> tuple[list[Any], Cells]:
    """The `changes` of [train] that these points need, and the levels that fill their holes and others.

    A hole of a change is called by its dimension and its epochs, `lr_after_4`; one that changes nothing at
    some point has the value before there. Of points that keep their values there are no changes.
    """
    if not study.is_population or study.fidelity is None:
        return [], cells
    courses = {name: _courses(study, values) for name, values in cells.items()}
    changes, levels = list[Any](), {name: _at(each, 0) for name, each in courses.items()}
    for number, epochs in enumerate(study.fidelity.rungs[:-1], 1):
        changed = {
            name
            for each in courses.values()
            for name, values in each.items()
            if values[number] != values[number - 1]
        }
        keys = {
            key: _renamed(value, epochs) for key, value in optimizer.items() if changed & set(_holes(value))
        }
        if not keys:
            continue
        changes.append({"after": epochs, **keys})
        named = {hole for value in keys.values() for hole in _holes(value)}
        for name, each in courses.items():
            new = {_name(dimension, epochs): value for dimension, value in _at(each, number).items()}
            levels[name] |= {hole: value for hole, value in new.items() if hole in named}
    return changes, levels


def _courses(study: Study, values: Mapping[str, Level]) -> dict[str, tuple[Level, ...]]:
    """The values of a point's dimensions in each generation."""
    rungs = () if study.fidelity is None else study.fidelity.rungs
    return {name: read_course(values[name], each, rungs) for name, each in study.dimensions.items()}


def _at(courses: Mapping[str, Sequence[Level]], generation: int) -> dict[str, Level]:
    return {name: values[generation] for name, values in courses.items()}


def _name(dimension: str, epochs: int) -> str:
    return f"{dimension}_after_{epochs}"


def _holes(value: Any) -> Iterator[str]:  # noqa: ANN401 -- a key of the optimizer holds anything
    """The holes of a value, or of those in a list."""
    for each in value if isinstance(value, list) else [value]:
        yield from HOLE_PATTERN.findall(each) if isinstance(each, str) else ()


def _renamed(value: Any, epochs: int) -> Any:  # noqa: ANN401 -- as above
    """A value whose holes are those of a change."""
    if isinstance(value, list):
        return [_renamed(each, epochs) for each in value]
    return (
        HOLE_PATTERN.sub(lambda hole: f"{{{_name(hole[1], epochs)}}}", value)
        if isinstance(value, str)
        else value
    )
