"""The course of a dimension: its values over the generations, `0.001 → 0.0012 after 4`, as one level.

One value stands for a course that never changes, so that a member which nothing changes is the trial that any
study would make of its values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...grammar.nodes import ChoiceDimension, Dimension, IntegerDimension
from ..fidelity import Fidelity
from ..resolve.resolve import resolve_settings
from ..resolve.template import Template
from ..schema.level_names import level_text
from ..schema.search import contains, representative_values
from ..schema.settings import Level, TrialSettings
from ..schema.training import CHANGEABLE, OptimizerChangeSettings

_ARROW, _AFTER = " → ", " after "


def write_courses(generations: Sequence[Mapping[str, Level]], rungs: Sequence[int]) -> dict[str, Level]:
    """The levels of a member that had these values in each generation, of which `rungs` are the epochs."""
    return {name: _write([each[name] for each in generations], rungs) for name in generations[0]}


def read_course(level: Level, dimension: Dimension, rungs: Sequence[int]) -> tuple[Level, ...]:
    """The values of a dimension in the generations up to these epochs; ValueError for any other level."""
    first, *others = level.split(_ARROW) if isinstance(level, str) else [""]
    if not others:
        values = [level] * len(rungs)
    else:
        values = [_read_value(first, dimension)] * len(rungs)
        for text in others:
            value, _, after = text.partition(_AFTER)
            begins = [str(epochs) for epochs in rungs[:-1]].index(after) + 1
            values[begins:] = [_read_value(value, dimension)] * (len(rungs) - begins)
    if not all(contains(dimension, each) for each in values) or _write(values, rungs) != level:
        raise ValueError(f"expected a course up to epoch {rungs[-1]}, got {level_text(level)}")
    return tuple(values)


def _write(values: Sequence[Level], rungs: Sequence[int]) -> Level:
    """The course of these values as one level."""
    changes = [
        f"{_ARROW}{level_text(value)}{_AFTER}{epochs}"
        for epochs, before, value in zip(rungs, values, values[1:], strict=False)
        if value != before
    ]
    return level_text(values[0]) + "".join(changes) if changes else values[0]


def course_settings(
    template: Template, levels: Mapping[str, Level], dimensions: Mapping[str, Dimension], fidelity: Fidelity
) -> TrialSettings:
    """The settings of a member up to the generation of its levels: those of its first values, then changes.

    Raises as `resolve_settings`, and ValueError for levels that are no courses up to there.
    """
    rung = fidelity.rung_of(levels)
    if rung is None:
        raise ValueError(f"expected a generation's {fidelity.name}, got {levels.get(fidelity.name)}")
    courses = {
        name: read_course(levels[name], each, fidelity.rungs[: rung + 1])
        for name, each in dimensions.items()
        if name in levels
    }
    begun = resolve_settings(template, {**levels, **{name: each[0] for name, each in courses.items()}})
    before, changes = begun.train.optimizer, list[OptimizerChangeSettings]()
    for generation in range(1, rung + 1):
        values = {name: each[generation] for name, each in courses.items()}
        if values == {name: each[generation - 1] for name, each in courses.items()}:
            continue
        optimizer = resolve_settings(template, {**levels, **values}).train.optimizer
        new = {
            key: value
            for key in CHANGEABLE
            if (value := getattr(optimizer, key, None)) != getattr(before, key, None)
        }
        after, before = fidelity.rungs[generation - 1], optimizer
        changes += [OptimizerChangeSettings(after=after, **new)] if new else []
    train = begun.train.model_copy(update={"changes": tuple(changes)})
    return begun.model_copy(update={"train": train})


def _read_value(text: str, dimension: Dimension) -> Level:
    """A value of a dimension from its text; ValueError if it has none such."""
    if isinstance(dimension, ChoiceDimension):
        found = [each for each in representative_values(dimension) if level_text(each) == text]
        if not found:
            raise ValueError(f"expected an option, got {text}")
        return found[0]
    return int(text) if isinstance(dimension, IntegerDimension) else float(text)
