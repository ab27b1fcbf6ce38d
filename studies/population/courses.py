"""The course of a dimension: its values over the generations, `0.001 → 0.0012 → 0.0012`, as one level.

One value stands for a course that never changes, so that a member which nothing changes is the trial that any
study would make of its values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...grammar.nodes import ChoiceDimension, Dimension
from ..fidelity import Fidelity
from ..resolve.resolve import resolve_settings
from ..resolve.template import Template
from ..schema.level_names import level_text
from ..schema.search import contains, representative_values
from ..schema.settings import Level, TrialSettings
from ..schema.training import CHANGEABLE, OptimizerChangeSettings

_ARROW = " → "


def write_courses(generations: Sequence[Mapping[str, Level]]) -> dict[str, Level]:
    """The levels of a member that had these values in each generation."""
    courses = {name: [each[name] for each in generations] for name in generations[0]}
    return {
        name: values[0] if len(set(map(level_text, values))) == 1 else _ARROW.join(map(level_text, values))
        for name, values in courses.items()
    }


def read_course(level: Level, dimension: Dimension, count: int) -> tuple[Level, ...]:
    """The values of a dimension in each of so many generations; ValueError if the level is no such course."""
    texts = level.split(_ARROW) if isinstance(level, str) else []
    values = tuple(_read_value(text, dimension) for text in texts) if texts[1:] else (level,) * count
    if len(values) != count or not all(contains(dimension, each) for each in values):
        raise ValueError(f"expected {count} values of a dimension, got {level_text(level)}")
    return values


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
        name: read_course(levels[name], each, rung + 1) for name, each in dimensions.items() if name in levels
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
    number = float(text)
    return int(number) if number == int(number) and "." not in text and "e" not in text else number
