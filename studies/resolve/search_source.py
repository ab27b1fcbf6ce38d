"""A search as the source of a study's trials: its space, its points, and their trials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

from ...grammar import Recipe
from ...grammar.dimensions import representative_values
from ...grammar.nodes import Dimension
from ..schema.factors import SEED
from ..schema.search import (
    Suggest,
    check_across,
    check_baseline_values,
    check_search,
    check_search_ends,
    check_search_space,
    contains,
    count_points,
    default_sampler,
    read_baseline,
    search_dimensions,
)
from ..schema.search_settings import Rungs, SearchSettings
from ..schema.settings import RECIPE_PATH, Level
from ..text.document import Diagnostics
from .compatibility import StudyBudget
from .draft import Draft, recipe_dimensions
from .template import Template, resolve_settings
from .trial import Trial

if TYPE_CHECKING:
    from ..study import Study


@dataclass(frozen=True, kw_only=True)
class SearchSource:
    """A search, which chooses points while it runs.

    `study` is the name of the study, `settings` the table [search]. `dimensions` has the dimensions by name,
    with options as plain data, and `fixed` the values of all other placeholders. `across` has the
    combinations of levels at which each point is trained, with each of `seeds`. `baseline` is the first
    point, which is empty if the study names none. It is trained with `baseline_seeds` on the last rung.
    """

    study: str
    settings: SearchSettings
    dimensions: Mapping[str, Dimension]
    fixed: Mapping[str, Level]
    across: tuple[Mapping[str, Level], ...]
    seeds: tuple[int, ...]
    baseline_seeds: tuple[int, ...]
    rungs: Rungs
    budget: StudyBudget
    template: Template
    baseline: Mapping[str, Level] = field(default_factory=dict[str, Level])

    @property
    def total(self) -> int:
        """The most trials that the search can have."""
        return sum(self.trials_by_rung)

    @property
    def trials_by_rung(self) -> list[int]:
        """The number of trials on each rung. It has one item if there is only one rung."""
        return self._trials_by_rung(self.num_points)

    @property
    def requested_trials(self) -> int:
        """The number of trials that the search requests; a small space may have fewer."""
        return sum(self._trials_by_rung(self.settings.trials))

    def _trials_by_rung(self, points: int) -> list[int]:
        more = len(self.baseline_seeds) - len(self.seeds)
        found = self.rungs.planned(points, has_baseline=bool(self.baseline))
        *lower, last = (each * len(self.seeds) for each in found)
        return [trials * len(self.across) for trials in (*lower, last + more)]

    @cached_property
    def num_points(self) -> int:
        """The number of points that the search trains.

        It is the requested number, or all points of a smaller space. Points with the same model count once,
        and points over the budget do not count.
        """

        def identify(values: Mapping[str, Level]) -> str | None:
            trial = self._trial_at(values, self.seeds[0], self.across[0])
            return trial.id if self.budget.allows(trial.settings) else None

        return count_points(self.choose, self.dimensions, identify, self.settings.trials)

    @property
    def points_by_rung(self) -> list[int]:
        """The number of points that the search trains on each rung.

        The baseline is only trained on the last rung.
        """
        return self.rungs.planned(self.num_points, has_baseline=bool(self.baseline))

    @cached_property
    def baseline_trials(self) -> tuple[Trial, ...]:
        """The trials of the baseline, on the last rung. Empty if the study names no baseline."""
        return self.trials_of(self.baseline) if self.baseline else ()

    def trials_at_ends(self, rung: int | None = None) -> tuple[Trial, ...]:
        """Return the trials at both ends of the space, on a rung, by default the last.

        At one end all dimensions have their first value, at the other their last value.
        """
        values = {name: representative_values(dimension) for name, dimension in self.dimensions.items()}
        ends = [{name: each[index] for name, each in values.items()} for index in (0, -1)]
        level = self._level(rung)
        return tuple(self.trial_of(end, self.seeds[0], {**at, **level}) for end in ends for at in self.across)

    def seeds_of(self, values: Mapping[str, Level]) -> tuple[int, ...]:
        """Return the seeds with which a point is trained.

        The baseline may have more seeds than other points.
        """
        return self.baseline_seeds if values == self.baseline else self.seeds

    def count_trials(self, values: Mapping[str, Level]) -> int:
        """Return the number of a point's trials on a rung."""
        return len(self.seeds_of(values)) * len(self.across)

    def trials_of(self, values: Mapping[str, Level], rung: int | None = None) -> tuple[Trial, ...]:
        """Return the trials of a point on a rung, by default the last.

        There is one for each seed and each of `across`.
        """
        level = self._level(rung)
        return tuple(
            self.trial_of(values, seed, {**at, **level})
            for seed in self.seeds_of(values)
            for at in self.across
        )

    def _level(self, rung: int | None) -> Mapping[str, Level]:
        return {} if rung is None else self.rungs.level(rung)

    def choose(self, suggest: Suggest) -> dict[str, Level]:
        """Choose a point by calling `suggest` for each active dimension.

        A dimension inside an option of another dimension is inactive if that option is not chosen.
        """
        return self.template.choose(self.dimensions, self.fixed, suggest)

    def trial_of(
        self, values: Mapping[str, Level | Recipe], seed: int = 0, at: Mapping[str, Level] | None = None
    ) -> Trial:
        """Return the trial that trains a point with one seed.

        `at` is one of `across`. `values` maps names in `dimensions` to values. Values of inactive dimensions
        are ignored. Raise ValueError for missing values, unknown names, and values that do not fit.
        """
        plain = {name: value.text if isinstance(value, Recipe) else value for name, value in values.items()}
        used = self.choose(
            lambda name, dimension: plain[name] if name in plain else representative_values(dimension)[0]
        )
        if used.keys() - values.keys() or values.keys() - self.dimensions.keys():
            expected, got = (", ".join(sorted(names)) or "none" for names in (used, values))
            raise ValueError(f"expected values of {expected}, got {got}")
        return self._trial_at(used, seed, at or {})

    def _trial_at(self, values: Mapping[str, Level], seed: int, at: Mapping[str, Level]) -> Trial:
        levels = {**self.fixed, **at, **values, SEED: seed}
        return Trial(study=self.study, levels=levels, settings=resolve_settings(self.template, levels))

    def values_of(self, levels: Mapping[str, Level]) -> dict[str, Level]:
        """Return the point that a trial of this search with these levels trains."""
        return {name: levels[name] for name in self.dimensions if name in levels}

    def read_point(self, levels: Mapping[str, Level]) -> dict[str, Level] | None:
        """Return the point with these stored levels, or None if it is not in the space."""

        def stored(name: str, dimension: Dimension) -> Level:
            if name not in levels or not contains(dimension, levels[name]):
                raise ValueError(f"no value of {name}")
            return levels[name]

        try:
            return self.choose(stored)
        except ValueError:
            return None


def find_dimensions(draft: Draft, search: SearchSettings | None) -> dict[str, Dimension]:
    """Return the dimensions of a study's search by name, and report faults of the search.

    Without the settings of the search, which have faults of their own, the result is empty.
    """
    diagnostics, factors = draft.diagnostics, draft.design.factors
    given = (*search.across, search.fidelity) if search else ()
    dimensions = search_dimensions(factors, draft.space, recipe_dimensions(draft), given)
    named = diagnostics.table("study").get("baseline")
    if isinstance(named, Mapping):
        in_recipe = named if RECIPE_PATH in diagnostics.invalid else ()
        check_baseline_values(diagnostics, named, dimensions, faulty={*draft.declared_names(), *in_recipe})
    if search is None:
        across = diagnostics.table("search").get("across")
        check_across(diagnostics, across if isinstance(across, list) else (), factors)
        return {}
    check_search(diagnostics, search, factors, dimensions)
    return dimensions


def build_search(
    diagnostics: Diagnostics,
    study: Study,
    settings: SearchSettings,
    dimensions: Mapping[str, Dimension],
) -> SearchSource:
    """Return the search of a study. Report faults that only its points show."""
    header, factors, seeds, names = study.header, study.factors, study.seeds, settings.across
    settings = settings.model_copy(
        update={"sampler": settings.sampler or default_sampler(settings, header.bounds)}
    )
    more, first = (header.baseline_seeds or 0) - len(seeds), max(seeds) + 1
    search = SearchSource(
        study=study.name,
        settings=settings,
        dimensions=dimensions,
        fixed={name: levels[0] for name, levels in factors.items() if name not in (*dimensions, SEED)},
        across=tuple(
            dict(zip(names, levels, strict=True)) for levels in product(*(factors[name] for name in names))
        ),
        seeds=seeds,
        baseline_seeds=(*seeds, *range(first, first + max(0, more))),
        rungs=next((each for each in study.expansions.values() if isinstance(each, Rungs)), Rungs()),
        budget=study.budget,
        template=study.template,
    )
    search = replace(search, baseline=read_baseline(diagnostics, header, dimensions, search.choose))
    check_search_space(diagnostics, settings, dimensions, search.choose)
    check_search_ends(
        diagnostics, settings, header.bounds, [each.settings for each in search.trials_at_ends()]
    )
    return search
