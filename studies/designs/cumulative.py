"""The cumulative design: from the baseline to the target, one change after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from ...errors import nearest_hint
from ..schema.design import Design
from ..schema.factors import NamedLevels, level_key
from ..schema.settings import Level
from ..text.strict_model import PartSettings
from ..text.toml_positions import KeyPath
from ..text.units import plural

_TARGET: KeyPath = ("study", "design", "target")


class StepwiseSettings(PartSettings):
    """The keys of `[study] design` for designs that go from the baseline to a target."""

    target: dict[str, Any] = Field(default={})
    """final levels of factors with more than two levels"""


@dataclass(frozen=True, kw_only=True)
class Stepwise(Design):
    """A sequence of cells from the baseline to the target, with one change from cell to cell."""

    settings: StepwiseSettings

    settings_class = StepwiseSettings

    @property
    def target(self) -> dict[str, Level]:
        """The levels of the target in `[study] design`, by factor."""
        named = self.settings.target.items()
        return {name: NamedLevels(self.factors[name], f"of {name}").find(level) for name, level in named}

    @property
    def steps(self) -> dict[str, Level]:
        """The factors that differ between baseline and target, in order, with their target levels."""
        ends = {name: self.target.get(name, self.other_level(name)) for name in self.inner}
        return {
            name: level
            for name, level in ends.items()
            if level_key(level) != level_key(self.baseline_level(name))
        }

    @property
    def order(self) -> tuple[str, ...]:
        """The factors that change, in the order of their changes."""
        return tuple(self.steps)

    def path(self) -> list[dict[str, Level]]:
        """Return the cells from the baseline to the target, one change after the other."""
        start, order = {name: self.baseline_level(name) for name in self.inner}, self.order
        return [start | {name: self.steps[name] for name in order[:count]} for count in range(len(order) + 1)]

    def make_rows(self) -> list[dict[str, Level]]:
        return self.path()

    def faults(self) -> Iterator[tuple[KeyPath, str]]:
        """Yield the faults that prevent a sequence of steps, such as a factor without a target level."""
        target = self.settings.target
        for name, levels in self.inner.items():
            if name not in target and len(levels) > 2:
                example = f"target = {{ {name} = … }}"
                message = f"expected two levels, got {len(levels)}: name the target level, as in {example}"
                yield ("factors", name), message
        if not all(self.factors.values()):  # `read_factors` reports factors without levels
            return
        order = list(self.inner)
        for name, condition in self.conditions.items():
            if name not in order:
                continue
            late = [each for each in condition if each in order and order.index(each) > order.index(name)]
            if late:
                needed = " and ".join(late)
                yield ("factors", name), f"{name} depends on {needed} in [when]: list {name} after {needed}"
        for name, level in target.items():
            if name in self.around:
                fault = f"{name} is in `around`, so it cannot have a target level: remove {name}"
            elif name not in self.inner:
                fault = f"unknown factor '{name}'{nearest_hint(name, self.inner)}"
            else:
                levels = NamedLevels(self.factors[name], f"of {name}")
                fault = levels.fault(level)
                if not fault and level_key(levels.find(level)) == level_key(self.baseline_level(name)):
                    fault = f"expected a level of {name} other than the baseline's"
            if fault:
                yield (*_TARGET, name), fault


class Cumulative(Stepwise):
    """A stepwise design whose changes come in the order of the study file."""

    title = "one change after the other, from the baseline to the target"

    def explain_kind(self) -> str:
        steps = self.steps
        return (
            f"{plural(len(steps), 'step')} from the baseline, {', '.join(steps)}, each added to the "
            "previous ones; effects depend on this order"
        )


DESIGN = Cumulative
