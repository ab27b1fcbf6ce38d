"""A search as the source of a study's trials: its space, its points, and their trials. Checks of a search."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, cycle, islice, product
from random import Random
from typing import TYPE_CHECKING

from ...errors import nearest_hint
from ...grammar import Recipe
from ...grammar.dimensions import representative_values
from ...grammar.nodes import ChoiceDimension, Dimension, IntegerDimension, RealDimension
from ..catalog.metrics import COSTS, MODEL_COSTS
from ..catalog.samplers import ONE_OBJECTIVE, WITHOUT_CONDITIONS, WITHOUT_LIMITS, TpeSettings
from ..schema.factors import SEED
from ..schema.limits import Limit, is_known_before
from ..schema.reported_metrics import final_metrics, last_metrics, missing_metric
from ..schema.search import (
    MAX_COUNTED,
    Suggest,
    as_listed,
    at_lowest_reals,
    contains,
    count_points,
    enumerate_points,
    options_by_name,
)
from ..schema.search_settings import EPOCHS, NONE, Rungs, SearchSettings, usual_direction
from ..schema.settings import RECIPE_PATH, Level
from ..text.document import Diagnostics
from ..text.strict_model import PartSettings, format_value
from ..text.toml_positions import KeyPath
from .compatibility import StudyBudget
from .costs import parameter_count
from .draft import Draft, recipe_dimensions
from .template import Template, resolve_settings
from .trial import Trial

if TYPE_CHECKING:
    from ..study import Study


PROBES = 200
"""The number of points that are drawn to find which are within the limits or lack dimensions."""


def _draw(dimension: Dimension, rng: Random) -> Level:
    """Draw a value uniformly, or uniformly on a logarithmic scale. Real numbers have two digits."""
    if isinstance(dimension, ChoiceDimension):
        return rng.choice(representative_values(dimension))
    if isinstance(dimension, IntegerDimension) and not dimension.log:
        return rng.randrange(dimension.low, dimension.high + 1, dimension.step)
    low, high = dimension.low, dimension.high
    value = low * (high / low) ** rng.random() if dimension.log else rng.uniform(low, high)
    if isinstance(dimension, IntegerDimension):
        return round(value)
    return min(max(float(f"{value:.2g}"), low), high)


@dataclass(frozen=True, kw_only=True)
class SearchSource:
    """A search, which chooses points while it runs.

    `study` is the name of the study, `settings` the table [search]. `dimensions` has the dimensions by name,
    with options as plain data, and `fixed` the values of all other holes. `across` has the
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
        """The number of points that the search trains on each rung, the baseline only on the last."""
        return self.rungs.planned(self.num_points, has_baseline=bool(self.baseline))

    @cached_property
    def baseline_trials(self) -> tuple[Trial, ...]:
        """The trials of the baseline, on the last rung. Empty if the study names no baseline."""
        return self.trials_of(self.baseline) if self.baseline else ()

    def trials_at_ends(self, rung: int | None = None, *, within_limits: bool = False) -> tuple[Trial, ...]:
        """Return the trials at both ends of the space, on a rung, by default the last.

        At one end all dimensions have their first value, at the other their last value. Where the limits
        forbid an end, `within_limits` returns the smallest and the largest model that is known to be allowed.
        """
        values = {name: representative_values(dimension) for name, dimension in self.dimensions.items()}
        ends = [{name: each[index] for name, each in values.items()} for index in (0, -1)]
        if within_limits and not all(map(self._allows, ends)):
            allowed = [*filter(self._allows, ends), *self.allowed_probes]
            allowed.sort(key=lambda point: parameter_count(self.trial_of(point, at=self.across[0]).settings))
            ends = [allowed[0], allowed[-1]] if allowed else ends
        level = self._level(rung)
        return tuple(self.trial_of(end, self.seeds[0], {**at, **level}) for end in ends for at in self.across)

    @cached_property
    def allowed_probes(self) -> tuple[dict[str, Level], ...]:
        """Those of `PROBES` random points that are within the limits."""
        return tuple(filter(self._allows, self._probes()))

    def _probes(self) -> Iterator[dict[str, Level]]:
        rng = Random(0)
        return (self.choose(lambda _, each: _draw(each, rng)) for _ in range(PROBES))

    def exclusion_fault(self) -> str | None:
        """Return the error message if no point is within the limits, as far as MAX_COUNTED points show it."""
        listed = islice(enumerate_points(at_lowest_reals(self.choose)), MAX_COUNTED)
        excluded = list[Trial]()
        for point in chain(self._probes(), listed) if self.budget.limits else ():
            if self._allows(point):
                return None
            excluded.append(self.trial_of(point, at=self.across[0]))
        many = f"one of {len(excluded):,} points that were tried"
        is_all = len(excluded) < PROBES + MAX_COUNTED
        return self.budget.describe_exclusion("point" if is_all else many, excluded) if excluded else None

    def _allows(self, values: Mapping[str, Level]) -> bool:
        return self.budget.allows(self.trial_of(values, at=self.across[0]).settings)

    def trials_of_options(self) -> tuple[Trial, ...]:
        """Return trials that together have the options of all choices and both ends of all ranges."""
        values = {name: representative_values(dimension) for name, dimension in self.dimensions.items()}
        turns = {name: cycle(each) for name, each in values.items()}
        unseen = {(name, value) for name, each in values.items() for value in each}
        points = list[dict[str, Level]]()
        for _ in range(2 * len(unseen)):  # options inside options may need a second round
            points.append(self.choose(lambda name, _: next(turns[name])))
            unseen -= points[-1].items()
            if not unseen:
                break
        level, seed = self._level(None), self.seeds[0]
        return tuple(self.trial_of(point, seed, {**at, **level}) for point in points for at in self.across)

    def seeds_of(self, values: Mapping[str, Level]) -> tuple[int, ...]:
        """Return the seeds with which a point is trained, which may be more for the baseline."""
        return self.baseline_seeds if values == self.baseline else self.seeds

    def count_trials(self, values: Mapping[str, Level]) -> int:
        """Return the number of a point's trials on a rung."""
        return len(self.seeds_of(values)) * len(self.across)

    def trials_of(self, values: Mapping[str, Level], rung: int | None = None) -> tuple[Trial, ...]:
        """Return the trials of a point on a rung (default: the last), for each seed and each of `across`."""
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


def find_dimensions(
    draft: Draft, search: SearchSettings | None, limits: Sequence[Limit]
) -> dict[str, Dimension]:
    """Return the dimensions of a study's search by name, and report faults of the search.

    They come from [factors], [search.space] and the recipe. A factor is a dimension if it has several levels
    and the search is not across it. Options of a choice are plain data, parts of a recipe as text. Without
    the settings of the search, which have faults of their own, the result is empty.
    """
    diagnostics, factors = draft.diagnostics, draft.design.factors
    asked = search.across if search else diagnostics.table("search").get("across")
    across: Sequence[object] = asked if isinstance(asked, list | tuple) else ()
    fidelity = search.fidelity if search else ""
    fixed = (SEED, fidelity, *search.across) if search else (SEED,)
    chosen = {
        name: ChoiceDimension(levels)
        for name, levels in factors.items()
        if name not in fixed and len(levels) > 1
    }
    own = {
        name: ChoiceDimension(representative_values(each)) if isinstance(each, ChoiceDimension) else each
        for name, each in recipe_dimensions(draft).items()
    }
    dimensions = {**chosen, **draft.space, **own}
    known = [name for name in factors if name not in (SEED, fidelity)]
    for number, name in enumerate(across):
        if isinstance(name, str) and name not in known:
            message = f"unknown factor '{name}'{nearest_hint(name, known)}"
            diagnostics.report(("search", "across", number), message)
        elif name in across[:number]:
            diagnostics.report(("search", "across"), f"expected each factor once, got '{name}' twice")
    named = diagnostics.table("study").get("baseline")
    in_recipe = named if RECIPE_PATH in diagnostics.invalid else ()
    # with other faults, such a name may be a dimension that has one
    unread = {*draft.declared_names(), *(in_recipe or ())} if diagnostics.faults else set[str]()
    if isinstance(named, Mapping):
        _check_baseline(diagnostics, named, dimensions, unread)
    if search is None:
        return {}
    for key, message in _faults(search, limits, dimensions):
        diagnostics.report(("search", key), message)
    for name in search.space:
        if name in factors:
            message = f"'{name}' is already a factor: rename one of the two"
            diagnostics.report(("search", "space", name), message, key=True)
    if not dimensions and not diagnostics.faults:
        message = "nothing to search: add a dimension to [search.space] or to the recipe"
        diagnostics.report(("search",), message)
    return dimensions


def _check_baseline(
    diagnostics: Diagnostics,
    given: Mapping[str, object],
    dimensions: Mapping[str, Dimension],
    unread: Collection[str],
) -> None:
    """Report unknown names, not in `unread`, and values outside of their dimensions."""
    for name, value in given.items():
        path = ("study", "baseline", name)
        dimension = dimensions.get(name)
        if dimension is None:
            if name not in unread:
                message = f"unknown dimension '{name}'{nearest_hint(name, dimensions)}"
                diagnostics.report(path, message, key=True)
        elif isinstance(dimension, ChoiceDimension):
            if fault := options_by_name(dimension).fault(value):
                diagnostics.report(path, fault)
        elif not contains(dimension, value):
            step = 1 if isinstance(dimension, RealDimension) else dimension.step
            steps = f" in steps of {step}" if step > 1 else ""
            values = f"{dimension.low} to {dimension.high}{steps}"
            diagnostics.report(path, f"expected {values}, got {format_value(value)}")


def _faults(
    search: SearchSettings, limits: Sequence[Limit], dimensions: Mapping[str, Dimension]
) -> Iterator[tuple[str, str]]:
    """Yield the faults of a search that its settings and dimensions show, each with its key in [search]."""
    names, sampler, scheduler = list(search.metric), search.sampler_name, search.scheduler.name
    for name in names if not search.direction else ():
        if usual_direction(name) is None:
            what = f"it is not known whether higher or lower {name} is better"
            yield "metric", f"{what}: set direction = 'max' or 'min'"
    if len(names) > 1:
        several = f"needs a single metric, got {', '.join(names)}"
        if sampler in ONE_OBJECTIVE:
            yield "sampler", f"{sampler} {several}"
        if scheduler != NONE:
            yield "scheduler", f"{scheduler} {several}"
    if search.fidelity != EPOCHS and is_known_before(names[0]):
        yield "metric", f"{scheduler} needs a metric that training changes, got '{names[0]}'"
    if search.compares_epochs and len(names) == 1 and names[0] in (*COSTS, *MODEL_COSTS):
        late = f"{scheduler} needs a metric that is measured after each epoch"
        yield "metric", f"{late}, got '{names[0]}'"
    learnt = [f"limits.{each.name}" for each in limits if not is_known_before(each.name)]
    if learnt and sampler in WITHOUT_LIMITS:
        why = f"{sampler} does not support limits on metrics that are known only after training"
        yield "sampler", f"{why}: remove {', '.join(learnt)}, or use another sampler"
    real = [name for name, dimension in dimensions.items() if isinstance(dimension, RealDimension)]
    if real and sampler == "grid":
        why = f"a grid cannot enumerate the real numbers of {', '.join(real)}"
        yield "sampler", f"{why}: write choice(…) instead of real(…), or use another sampler"


def build_search(
    diagnostics: Diagnostics,
    study: Study,
    settings: SearchSettings,
    dimensions: Mapping[str, Dimension],
) -> SearchSource:
    """Return the search of a study. Report faults that only its points show.

    The default sampler is `gp_trees`, or `tpe` for several metrics and for limits on values that only
    training shows, which `gp_trees` does not support.
    """
    header, factors, seeds, names = study.header, study.factors, study.seeds, settings.across
    learns_limits = any(not is_known_before(each.name) for each in header.bounds)
    by_tpe = len(settings.metric) > 1 or learns_limits
    usual = TpeSettings(name="tpe") if by_tpe else PartSettings(name="gp_trees")
    settings = settings.model_copy(update={"sampler": settings.sampler or usual})
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
    if header.baseline:
        search = replace(search, baseline=_baseline(diagnostics, search, header.baseline))
    elif header.baseline_seeds is not None:
        message = "baseline_seeds needs a baseline: add baseline = { … }"
        diagnostics.report(("study", "baseline_seeds"), message)
    _check_points(diagnostics, search, header.bounds)
    return search


def _baseline(diagnostics: Diagnostics, search: SearchSource, named: Mapping[str, Level]) -> dict[str, Level]:
    """Return the point of `[study] baseline`, which a search trains first. Report missing and idle values."""
    given = {name: as_listed(search.dimensions[name], value) for name, value in named.items()}
    missing = list[str]()

    def value_of(name: str, dimension: Dimension) -> Level:
        missing.extend([name] if name not in given else [])
        return given.get(name, representative_values(dimension)[0])

    point = search.choose(value_of)
    idle = [name for name in given if name not in point]
    if missing:
        message = f"expected a value of each dimension: {', '.join(missing)} is missing"
        diagnostics.report(("study", "baseline"), message)
    elif idle:
        message = f"this point does not use {', '.join(idle)}: remove the value"
        diagnostics.report(("study", "baseline"), message)
    return point


def _check_points(diagnostics: Diagnostics, search: SearchSource, limits: Sequence[Limit]) -> None:
    """Report objectives, limits and dimensions that some points of a search lack."""
    settings, dimensions = search.settings, search.dimensions
    # a dimension of one block is absent from points that choose another block; random points show such ones
    absent, rng = set[str](), Random(0)
    for _ in range(PROBES if settings.sampler_name in WITHOUT_CONDITIONS else 0):
        point = search.choose(lambda _, each: rng.choice(representative_values(each)))
        absent |= dimensions.keys() - point.keys()
    if absent:
        lacking = ", ".join(name for name in dimensions if name in absent)
        message = f"{settings.sampler_name} needs the same dimensions in all points, but some lack {lacking}"
        remedy = "tpe, evolution and gp_trees support conditional dimensions"
        diagnostics.report(("search", "sampler"), f"{message}: {remedy}")
    if fault := search.exclusion_fault():
        diagnostics.report(("study", "limits"), fault)
    paths: list[tuple[KeyPath, str]] = [(("search", "metric"), name) for name in settings.metric]
    paths += [(("study", "limits", each.name), each.name) for each in limits]
    ends = [each.settings for each in search.trials_at_ends()]
    for path, name in paths:
        for end in ends:
            fault = missing_metric(name, [end])
            late = last_metrics(end) if settings.compares_epochs and path == ("search", "metric") else ()
            if name in late and not fault:
                early = ", ".join(each for each in final_metrics(end) if each not in late)
                rule = f"{settings.scheduler.name} needs a metric that is measured after each epoch"
                fault = f"{rule}: expected one of {early}; got '{name}'"
            if fault:
                diagnostics.report(path, fault)
                break
