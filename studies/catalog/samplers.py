"""Registries of the samplers and schedulers that `[search] sampler` and `scheduler` can name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ...plugins import Registry

if TYPE_CHECKING:
    import optuna

PartT = TypeVar("PartT")

MakeSampler = Callable[[int], "optuna.samplers.BaseSampler"]
"""Makes a sampler from a seed."""

MakeScheduler = Callable[[], "optuna.pruners.BasePruner"]
"""Makes a scheduler, which Optuna calls a pruner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPart(Generic[PartT]):
    """A registered sampler or scheduler of searches.

    `source` names the publication that describes it. `startup` is the number of points that a sampler draws
    at random before it learns from results, or the sampler's key that sets this number. `make` is the
    function of a plug-in that builds it; None for built-in samplers and schedulers.
    """

    source: str
    startup: int | str = 0
    make: PartT | None = None


SAMPLERS: Registry[SearchPart[MakeSampler]] = Registry(
    "sampler",
    {
        name: SearchPart(source=source, startup=startup)
        for name, (source, startup) in {
            "tpe": ("Bergstra et al. 2011; Watanabe 2023", "n_startup_trials"),
            "evolution": ("Real et al. 2019", "population"),
            "random": ("Bergstra and Bengio 2012", 0),
            "quasi_random": ("Sobol 1967; Owen 1998", 0),
            "cmaes": ("Hansen and Ostermeier 2001", 10),
            "gp": ("Jones, Schonlau and Welch 1998", 10),
            "gp_trees": ("Ru et al. 2021", 10),
            "nsga2": ("Deb et al. 2002", 50),
            "grid": ("all points in order", 0),
        }.items()
    },
)
"""Every sampler by its name."""

ONE_OBJECTIVE = ("cmaes", "gp_trees")
"""The samplers that support only one objective."""

WITHOUT_CONDITIONS, NUMBERS_ALONE = ("cmaes", "gp"), ("cmaes",)
"""The samplers that need the same dimensions in all points, and those that need numeric dimensions."""

WITHOUT_LIMITS = ("cmaes", "gp_trees")
"""The samplers that do not learn from exceeded limits."""

SCHEDULERS: Registry[SearchPart[MakeScheduler]] = Registry(
    "scheduler",
    {
        name: SearchPart(source=source)
        for name, source in {
            "asha": "Li et al. 2020",
            "median": "Golovin et al. 2017",
            "race": "Birattari et al. 2002",
            "none": "no point is pruned",
        }.items()
    },
)
"""Every scheduler by its name."""

MakeT = TypeVar("MakeT", bound=Callable[..., Any])


def register_sampler(name: str, *, source: str) -> Callable[[MakeT], MakeT]:
    """Return a decorator that registers a function as a sampler with this name.

    The function takes a seed and returns an `optuna.samplers.BaseSampler`. Raises ValueError for a taken
    name.
    """
    return _register(SAMPLERS, name, source)


def register_scheduler(name: str, *, source: str) -> Callable[[MakeT], MakeT]:
    """Return a decorator that registers a function as a scheduler with this name.

    The function returns an `optuna.pruners.BasePruner`. Raises ValueError for a taken name.
    """
    return _register(SCHEDULERS, name, source)


def _register(registry: Registry[SearchPart[Any]], name: str, source: str) -> Callable[[MakeT], MakeT]:
    def register(make: MakeT) -> MakeT:
        if not callable(make):
            raise ValueError(f"expected a factory of the {registry.kind} '{name}', got {make!r}")
        registry.register(name, SearchPart(source=source, make=make))
        return make

    return register
