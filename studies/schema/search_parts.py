"""`sampler` and `scheduler` of [search]: a name alone, or a table with the name and its own keys."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field, model_validator

from ...plugins import Registry
from ..catalog.samplers import SAMPLERS, SCHEDULERS
from ..text.pydantic_messages import format_value, validate
from ..text.strict_model import StrictModel
from ..text.toml_positions import KeyPath

EPOCHS, LENGTH, DATA = "epochs", "length", "data"
"""What grows from rung to rung, if it is no dimension of the study."""

NONE, RACE = "none", "race"
"""Schedulers that do not compare points after each epoch."""


class SamplerSettings(StrictModel):
    """A sampler without keys of its own."""

    name: str
    """the sampler"""


class TpeSettings(SamplerSettings):
    """The keys of `tpe`."""

    n_startup_trials: int = Field(default=10, ge=0)
    """points that are drawn before the sampler proposes any"""
    multivariate: bool = True
    """whether dimensions are chosen together"""


class EvolutionSettings(SamplerSettings):
    """The keys of `evolution`."""

    population: int = Field(default=20, ge=2)
    """how many of the last points can be changed"""
    sample: int = Field(default=10, ge=1)
    """of how many of them, drawn anew each time, the best is changed"""

    @model_validator(mode="after")
    def check_sample(self) -> EvolutionSettings:
        """Check that a sample is a part of the population."""
        if self.sample > self.population and "sample" in self.model_fields_set:
            raise ValueError(f"sample: expected at most the population, {self.population}, got {self.sample}")
        return self


class GpTreesSettings(SamplerSettings):
    """The keys of `gp_trees`."""

    prior: dict[str, Any] = Field(default={})
    """values by dimension that are likely to be near the best"""
    confidence: float = Field(default=0.5, gt=0, lt=1)
    """how likely the prior is right before anything is known"""

    @model_validator(mode="after")
    def check_confidence(self) -> GpTreesSettings:
        """Check that a confidence has a prior."""
        if "confidence" in self.model_fields_set and not self.prior:
            raise ValueError("confidence: expected a prior beside it, got none")
        return self


class SchedulerSettings(StrictModel):
    """A scheduler without keys of its own."""

    name: str
    """the scheduler"""


class RungSettings(SchedulerSettings):
    """The keys of `asha` and `hyperband`."""

    fidelity: str = EPOCHS
    """what grows from rung to rung: `epochs`; `length`, the longest of a training; `data`, the steps of an
    epoch; or a dimension of whole numbers that fills a hole, such as a width"""
    min_fidelity: int | None = Field(default=None, ge=1)
    """the first rung; by default 1 epoch, for `length` and `data` the last rung divided twice by the
    reduction, for a dimension its lowest value"""
    reduction: int | None = Field(default=None, ge=2)
    """one of so many points goes on to the next rung, which has so many times as much; by default 4 for
    `asha`, 3 for `hyperband`"""

    @property
    def reduction_factor(self) -> int:
        """The reduction, given or default."""
        return self.reduction or REDUCTIONS[self.name]


class RaceSettings(SchedulerSettings):
    """The keys of `race`."""

    risk: float = Field(default=0.05, gt=0, lt=1)
    """the highest chance that the best point is given up"""


REDUCTIONS = {"asha": 4, "hyperband": 3}
"""The default reductions of the schedulers that have rungs."""

SAMPLER_KEYS: dict[str, type[SamplerSettings]] = {
    "tpe": TpeSettings,
    "evolution": EvolutionSettings,
    "gp_trees": GpTreesSettings,
}
"""The settings of samplers that have keys of their own."""

SCHEDULER_KEYS: dict[str, type[SchedulerSettings]] = {
    "asha": RungSettings,
    "hyperband": RungSettings,
    RACE: RaceSettings,
}
"""The settings of schedulers that have keys of their own."""


def part_table(given: object) -> Mapping[str, Any]:
    """Return a sampler or scheduler as a table, as it stands in a study file; empty if it is neither."""
    if isinstance(given, str):
        return {"name": given}
    return given if isinstance(given, Mapping) else {}


def read_sampler(given: object) -> object:
    """Return the settings of a sampler. Raises ValueError with every fault."""
    return _read(given, SAMPLERS, SamplerSettings, SAMPLER_KEYS)


def read_scheduler(given: object) -> object:
    """Return the settings of a scheduler. Raises ValueError with every fault."""
    return _read(given, SCHEDULERS, SchedulerSettings, SCHEDULER_KEYS)


def _read(
    given: object,
    registry: Registry[Any],
    plain: type[StrictModel],
    classes: Mapping[str, type[StrictModel]],
) -> object:
    if given is None or isinstance(given, plain):
        return given
    if not isinstance(given, str | Mapping):
        raise ValueError(f"expected a text or a table, got {format_value(given)}")
    table = part_table(given)
    name = table.get("name")
    known = classes.get(registry.check(name), plain) if isinstance(name, str) else plain
    return validate(known, table)


def moved_keys(search: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    """Yield each key of [search] that belongs in the table of a sampler or a scheduler, and what to write."""
    for kind, classes in (("sampler", SAMPLER_KEYS), ("scheduler", SCHEDULER_KEYS)):
        named = part_table(search.get(kind)).get("name")
        for key in search:
            owners = [name for name, each in classes.items() if key in each.model_fields and key != "name"]
            if owners:
                name = named if named in owners else owners[0]
                value = json.dumps(search[key]) if isinstance(search[key], str | int | float) else "…"
                message = f"unknown key '{key}': write {kind} = {{ name = \"{name}\", {key} = {value} }}"
                yield ("search", key), message
