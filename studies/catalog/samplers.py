"""Registries of the samplers and schedulers that `[search] sampler` and `scheduler` can name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import Field, model_validator

from ...plugins import PluginError, Registry, check_part
from ..text.strict_model import PartSettings, class_faults

if TYPE_CHECKING:
    import optuna


class TpeSettings(PartSettings):
    """The keys of `[search] sampler` for `tpe`."""

    n_startup_trials: int = Field(default=10, ge=0)
    """the number of random points before the sampler proposes any"""


class EvolutionSettings(PartSettings):
    """The keys of `[search] sampler` for `evolution`."""

    population: int = Field(default=20, ge=2)
    """how many of the latest points form the population"""
    sample: int = Field(default=10, ge=1)
    """the size of the random sample whose best member is mutated"""

    @model_validator(mode="after")
    def _check_sample(self) -> EvolutionSettings:
        if self.sample > self.population and "sample" in self.model_fields_set:
            raise ValueError(f"expected sample of at most population = {self.population}, got {self.sample}")
        return self


class Nsga2Settings(PartSettings):
    """The keys of `[search] sampler` for `nsga2`."""

    population: int = Field(default=50, ge=2)
    """the number of points in a generation; the first generation is random"""


class PluginSampler(PartSettings, ABC):
    """Base class of a plug-in's sampler with keys of its own; its fields are keys of `[search] sampler`."""

    @abstractmethod
    def build(self, seed: int) -> optuna.samplers.BaseSampler:
        """Build the sampler. A search builds a new one for each point, with another seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPart:
    """A registered sampler or scheduler of searches.

    `source` names the publication that describes it. `startup` is the number of points that a sampler draws
    at random before it learns from results, or the sampler's key that sets this number. `make` is the
    function of a plug-in that builds a sampler from a seed, or a scheduler, which Optuna calls a pruner; None
    for built-in ones. `settings` is the class of a sampler's keys.
    """

    source: str
    startup: int | str = 0
    make: Callable[..., Any] | None = None
    settings: type[PartSettings] = PartSettings


SAMPLERS: Registry[SearchPart] = Registry(
    "sampler",
    {
        "tpe": SearchPart(
            source="Bergstra et al. 2011; Watanabe 2023", startup="n_startup_trials", settings=TpeSettings
        ),
        "evolution": SearchPart(source="Real et al. 2019", startup="population", settings=EvolutionSettings),
        "nsga2": SearchPart(source="Deb et al. 2002", startup="population", settings=Nsga2Settings),
    }
    | {
        name: SearchPart(source=source, startup=startup)
        for name, (source, startup) in {
            "random": ("Bergstra and Bengio 2012", 0),
            "gp": ("Jones, Schonlau and Welch 1998", 10),
            "gp_trees": ("Ru et al. 2021", 10),
            "grid": ("all points in order", 0),
        }.items()
    },
)
"""Every sampler by its name."""

ONE_OBJECTIVE = WITHOUT_LIMITS = ("gp_trees",)
"""The samplers that support only one objective, and those that do not learn from exceeded limits."""

WITHOUT_CONDITIONS = ("gp",)
"""The samplers that need the same dimensions in all points."""

SCHEDULERS: Registry[SearchPart] = Registry(
    "scheduler",
    {
        name: SearchPart(source=source)
        for name, source in {
            "asha": "Li et al. 2020",
            "median": "Golovin et al. 2017",
            "none": "no point is pruned",
        }.items()
    },
)
"""Every scheduler by its name."""

MakeT = TypeVar("MakeT", bound=Callable[..., Any])


def register_sampler(name: str, *, source: str) -> Callable[[MakeT], MakeT]:
    """Return a decorator that registers a function as a sampler with this name.

    The function takes a seed and returns an `optuna.samplers.BaseSampler`. A sampler with keys of its own is
    a subclass of PluginSampler instead. Raises PluginError for a taken name, and for keys without a meaning
    or a default.
    """

    def register(make: MakeT) -> MakeT:
        keys: object = make
        if not (isinstance(keys, type) and issubclass(keys, PluginSampler)):
            return _register(SAMPLERS, name, source)(make)
        check_part(class_faults(keys, PluginSampler))
        SAMPLERS.register(name, SearchPart(source=source, settings=keys))
        return make

    return register


def register_scheduler(name: str, *, source: str) -> Callable[[MakeT], MakeT]:
    """Return a decorator that registers a function as a scheduler with this name.

    The function returns an `optuna.pruners.BasePruner`. Raises PluginError for a taken name.
    """
    return _register(SCHEDULERS, name, source)


def _register(registry: Registry[SearchPart], name: str, source: str) -> Callable[[MakeT], MakeT]:
    def register(make: MakeT) -> MakeT:
        if not callable(make):
            raise PluginError(f"expected a factory of the {registry.kind} '{name}', got {make!r}")
        registry.register(name, SearchPart(source=source, make=make))
        return make

    return register
