"""Connection of a search to its sampler and to Optuna.

It makes samplers and schedulers by name, proposes points, and reports results. Plug-ins may add samplers and
schedulers. With rungs there is an Optuna study for each rung, since values of different rungs are never
compared. The sampler learns from the highest rung with enough finished points, as in BOHB (Falkner et al.
2018).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import islice
from random import Random
from typing import Any

import optuna
from optuna.samplers import BaseGASampler, BaseSampler, RandomSampler
from optuna.trial import FrozenTrial, TrialState, create_trial

from ....errors import plain_value
from ....grammar import render
from ....plugins import PluginError, Registry, plugin_errors
from ....studies.catalog.samplers import (
    SAMPLERS,
    SCHEDULERS,
    EvolutionSettings,
    PluginSampler,
    TpeSettings,
)
from ....studies.schema.search import contains, enumerate_points, is_enumerable
from ....studies.schema.search_settings import SearchSettings
from ....studies.schema.settings import TrialSettings
from ....studies.study import Study
from ....studies.text.strict_model import format_value
from .samplers.evolution import EvolutionSampler
from .samplers.search_observations import (
    Proposals,
    Sampler,
    Values,
    ValuesKey,
    distribution,
    draw,
    suggest,
    values_key,
)
from .stored_points import PointEnd, SearchPoint


def made_by_plugin(
    registry: Registry[Any], name: str, base: type[Any], make: Callable[..., object], *given: object
) -> Any:  # noqa: ANN401 -- an instance of the base
    """Return the object that a plug-in makes. Raise PluginError if it is not an instance of `base`."""
    with plugin_errors(registry.kind, name, make):
        found = make(*given)
    if not isinstance(found, base):
        raise PluginError(
            f"{registry.owner(name)}: {registry.kind} '{name}': "
            f"expected an optuna {base.__name__}, got {type(found).__name__}"
        )
    return found


def _plugin_of(settings: SearchSettings) -> Callable[[int], BaseSampler] | None:
    sampler = settings.sampler
    return sampler.build if isinstance(sampler, PluginSampler) else SAMPLERS[settings.sampler_name].make


def optuna_sampler_maker(settings: SearchSettings) -> Callable[[int], BaseSampler]:
    """Return a function that makes Optuna's sampler of a search, or that of a plug-in, from a seed.

    Optuna's samplers keep a random generator between proposals, which a killed search loses. So a search
    makes the sampler anew for each proposal, with another seed. The function raises PluginError if the
    sampler of a plug-in cannot be made.
    """
    sampler, name = settings.sampler, settings.sampler_name
    if (plugin := _plugin_of(settings)) is not None:
        return partial(made_by_plugin, SAMPLERS, name, BaseSampler, plugin)

    def make(seed: int) -> BaseSampler:
        with warnings.catch_warnings():  # the sampler is experimental, but Optuna's version is pinned
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            if isinstance(sampler, TpeSettings):
                return optuna.samplers.TPESampler(
                    seed=seed,
                    n_startup_trials=sampler.n_startup_trials,
                    multivariate=True,
                    group=True,  # so that conditional dimensions are also sampled jointly
                )
            if name == "gp":
                return optuna.samplers.GPSampler(seed=seed, n_startup_trials=settings.startup)
            if name == "nsga2":
                return optuna.samplers.NSGAIISampler(seed=seed, population_size=settings.startup)
            return RandomSampler(seed=seed)

    return make


def make_own_sampler(study: Study) -> Sampler | None:
    """Return a built-in sampler for a study's search, or None if its sampler is one of Optuna's."""
    assert study.search is not None
    settings = study.search.settings
    sampler = settings.sampler
    if isinstance(sampler, EvolutionSettings):
        sizes = {"population": sampler.population, "sample": sampler.sample}
        return EvolutionSampler(study.search, seed=settings.seed, **sizes)
    if settings.sampler_name == "gp_trees":
        from .samplers.gp_trees import TreeSampler  # noqa: PLC0415 -- loads scipy

        return TreeSampler(study, seed=settings.seed)
    return None


def make_pruner(settings: SearchSettings) -> optuna.pruners.BasePruner:
    """Return the pruner of a search. Raise PluginError if it cannot be made."""
    scheduler = settings.scheduler
    make = SCHEDULERS[scheduler.name].make
    if make is not None:
        found = made_by_plugin(SCHEDULERS, scheduler.name, optuna.pruners.BasePruner, make)
        return PluginPruner(scheduler.name, found)
    keys = scheduler.model_dump()
    if "reduction" in keys and settings.compares_epochs:
        return optuna.pruners.SuccessiveHalvingPruner(
            min_resource=keys["min_fidelity"] or 1, reduction_factor=keys["reduction"]
        )
    return optuna.pruners.MedianPruner() if scheduler.name == "median" else optuna.pruners.NopPruner()


def next_comparison(search: SearchSettings, epoch: int, settings: TrialSettings) -> int | None:
    """Return the next epoch, after `epoch`, at which the scheduler compares search points.

    Return None if it does not compare epochs, or none before the last one.
    """
    if not search.compares_epochs:
        return None
    scheduler, following = search.scheduler, epoch + 1
    keys = scheduler.model_dump() if SCHEDULERS[scheduler.name].make is None else {}
    if "reduction" in keys:
        following = keys["min_fidelity"] or 1
        while following <= epoch:
            following *= keys["reduction"]
    return following if following < settings.train.epochs else None


class PluginPruner(optuna.pruners.BasePruner):
    """A plug-in's scheduler as a pruner of Optuna.

    Errors of its code become a PluginError that names the scheduler.
    """

    def __init__(self, name: str, pruner: optuna.pruners.BasePruner) -> None:
        self._name, self._pruner = name, pruner

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        with plugin_errors(SCHEDULERS.kind, self._name, SCHEDULERS[self._name].make):
            return bool(self._pruner.prune(study, trial))


ENOUGH, MORE_THAN_DIMENSIONS = 10, 3
"""Samplers learn from a rung that has at least `ENOUGH` points, and at least `MORE_THAN_DIMENSIONS` points
more than the search has dimensions."""

MAX_REJECTED_PROPOSALS = 10
"""After this many proposals in a row of points that are known already, an untried point is drawn."""

REJECTED_PROPOSALS = {"grid": 0, "random": 0, "evolution": 50}
"""Limits of some samplers instead of `MAX_REJECTED_PROPOSALS`: 0 for those that never propose, and more for
evolution, which mutates more after rejected proposals."""

DRAWN, DRAWN_OF_REALS = 200, 2_000
"""The number of draws before untried points are taken in order or, with real dimensions, the search ends."""

MAX_ENUMERATED_POINTS = 100_000
"""A search ends if none of this many points in order is new."""


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Within this context, Optuna logs only errors."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(level)


class OptunaStudy:
    """Proposer of a search's points, who also learns how they have ended.

    `studies` has the Optuna study of each rung. The rung with the smallest budget is first.
    """

    @quiet_optuna()
    def __init__(self, study: Study) -> None:
        assert study.search is not None
        self._study, self._search, self._settings = study, study.search, study.search.settings
        self._name, self._seed = self._settings.sampler_name, self._settings.seed
        rungs = len(study.search.points_by_rung)
        self.studies = [
            optuna.create_study(
                study_name=study.name,  # a pruner may depend on this name, so it must survive a restart
                directions=[
                    "maximize" if each.maximise else "minimize" for each in self._settings.objectives
                ],
                sampler=RandomSampler(),
                pruner=make_pruner(self._settings),
            )
            for _ in range(rungs)
        ]
        self._samplers = [make_own_sampler(study) for _ in range(rungs)]
        self._make_sampler, plugin = optuna_sampler_maker(self._settings), _plugin_of(self._settings)
        self._errors = partial(plugin_errors, SAMPLERS.kind, self._name, plugin) if plugin else nullcontext
        self._is_plugin = plugin is not None
        first = self._make_sampler(0)  # a sampler that cannot be made raises here
        self._genetic = first if isinstance(first, BaseGASampler) else None
        # a sampler learns from a rung with so many ended points
        self._enough = max(ENOUGH, len(study.dimensions) + MORE_THAN_DIMENSIONS)
        self._complete = [0] * rungs  # the numbers of points with a value
        self._restored = 0  # the number of them that were restored
        self._begun = set[ValuesKey]()
        self._training: dict[ValuesKey, Values] = {}
        self._tried = set[ValuesKey]()  # also the proposals that were rejected
        self._space = {name: distribution(each) for name, each in study.dimensions.items()}
        self._is_enumerable = is_enumerable(study.dimensions)
        self._in_order = enumerate_points(self._search.choose) if self._is_enumerable else iter(())

    @property
    def rung(self) -> int:
        """Return the highest rung with enough ended points for a sampler to learn from, else the first."""
        return max((rung for rung, count in enumerate(self._complete) if count >= self._enough), default=0)

    @quiet_optuna()
    def ask_for(self, values: Values) -> optuna.Trial:
        """Create an Optuna trial for a search point that no sampler of Optuna has proposed."""
        study = self.studies[self.rung]
        study.enqueue_trial(dict(values))
        trial = study.ask()
        self._search.choose(partial(suggest, trial))
        self._training[self._note_begun(values)] = values
        return trial

    def _note_begun(self, values: Values) -> ValuesKey:
        key = values_key(values)
        self._begun.add(key)
        self._tried.add(key)
        return key

    @quiet_optuna()
    def propose(
        self, accept: Callable[[Values], SearchPoint | None], begun: int
    ) -> tuple[SearchPoint, optuna.Trial, str] | None:
        """Return a new search point; None if no point is left.

        With the point, return its Optuna trial and its sampler's name. `accept` returns the point with these
        values if it is new, else None. `begun` is the number of points that any driver has begun.
        """
        rejected = list[ValuesKey]()
        while len(rejected) < REJECTED_PROPOSALS.get(self._name, MAX_REJECTED_PROPOSALS):
            training = tuple(self._training.values())
            proposals = Proposals(begun=begun, known=self._begun, training=training, rejected=rejected)
            values, trial = self._sample(proposals)
            if (point := self._accepted(values, accept)) is not None:
                if trial is None:
                    return point, self.ask_for(values), self._name
                self._training[self._note_begun(values)] = values
                return point, trial, self._name
            if trial is not None:
                trial.study.tell(trial, state=TrialState.FAIL)
            rejected.append(values_key(values))
        drawn = iter(()) if self._name == "grid" else self._draw(begun)
        left = islice(self._in_order, MAX_ENUMERATED_POINTS)
        for points, source in ((drawn, "random"), (left, "grid")):
            for values in points:
                if (point := self._accepted(values, accept)) is not None:
                    return point, self.ask_for(values), source
        return None

    def _sample(self, proposals: Proposals) -> tuple[Values, optuna.Trial | None]:
        """Let the sampler propose a point. Return an Optuna trial as well if the sampler is Optuna's."""
        if (own := self._samplers[self.rung]) is not None:
            values = own.propose(proposals)
            return self._search.choose(lambda name, _: values[name]), None  # in the order of all points
        study, seed = self.studies[self.rung], proposals.random(self._seed).getrandbits(32)
        without = study.sampler
        try:
            with self._errors():
                study.sampler = sampler = self._make_sampler(seed)
                trial = study.ask()
                if isinstance(sampler, BaseGASampler):
                    # Optuna 5.0 orders parents differently in the proposal that selects them: do it before
                    begun = study.get_trials(deepcopy=False)[trial.number]
                    sampler.get_parent_population(study, sampler.get_trial_generation(study, begun))
                values = self._search.choose(partial(suggest, trial))
        finally:
            study.sampler = without
        if self._is_plugin:
            values = {name: plain_value(value) for name, value in values.items()}  # also of numpy's numbers
            self._check_proposal(values)
        return values, trial

    def _check_proposal(self, values: Values) -> None:
        """Raise PluginError for a value outside of the search's space."""
        for name, value in values.items():
            dimension = self._study.dimensions[name]
            if not contains(dimension, value):
                raise PluginError(
                    f"{SAMPLERS.owner(self._name)}: {SAMPLERS.kind} '{self._name}': "
                    f"{name}: expected a value of {render(dimension)}, got {format_value(value)}"
                )

    def _accepted(self, values: Values, accept: Callable[[Values], SearchPoint | None]) -> SearchPoint | None:
        if (key := values_key(values)) in self._tried:
            return None
        self._tried.add(key)
        return accept(values)

    def _draw(self, begun: int) -> Iterator[Values]:
        """Yield search points, drawn uniformly in each dimension. A resumed search repeats the draws."""
        rng = Random(f"{self._seed} {begun}")
        for _ in range(DRAWN if self._is_enumerable else DRAWN_OF_REALS):
            yield self._search.choose(lambda name, _: draw(self._space[name], rng))

    @quiet_optuna()
    def should_prune(self, trial: optuna.Trial, course: Mapping[int, float]) -> bool:
        """Report the metric of each epoch to the scheduler, and return whether it prunes the search point."""
        gives_up = trial.should_prune()
        for epoch, value in course.items():
            trial.report(value, epoch)
            gives_up = trial.should_prune()
        return gives_up

    @quiet_optuna()
    def tell(self, point: SearchPoint, end: PointEnd, trial: optuna.Trial | None) -> None:
        """Report to the sampler and to Optuna how a search point has ended.

        A point without a trial was restored from the store. If a pruned point has a later value than the
        scheduler has seen, that value is reported as well. If another rung has proposed the point, its Optuna
        study gets no value.
        """
        self._training.pop(self._note_begun(point.values), None)
        study, is_complete = self.studies[point.rung], end.state == TrialState.COMPLETE
        if trial is not None and trial.study is study:
            judged = study.get_trials(deepcopy=False)[trial.number].last_step or 0
            if end.state == TrialState.PRUNED and judged < end.epoch:
                trial.report(end.values[0], end.epoch)
            for limit, excess in end.excess.items():
                trial.set_constraint(limit, excess)
            study.tell(trial, end.values if is_complete else None, state=end.state)
        else:
            if trial is not None:
                trial.study.tell(trial, state=TrialState.FAIL)
            study.add_trial(frozen_trial(self._study, point, end, attributes=self._generation(trial)))
            self._restored += trial is None and is_complete
        self._complete[point.rung] += is_complete
        if (own := self._samplers[point.rung]) is not None:
            own.learn(point.values, end)

    def _generation(self, trial: optuna.Trial | None) -> dict[str, int]:
        """Return the generation of a point as Optuna's genetic samplers note it on trials they propose.

        For a restored point, it follows from the order in which points ended.
        """
        if trial is not None or self._genetic is None or self._genetic.population_size is None:
            return {}
        name = f"{type(self._genetic).__name__}:generation"
        return {name: self._restored // self._genetic.population_size}


def frozen_trial(
    study: Study,
    point: SearchPoint,
    end: PointEnd,
    *,
    course: Mapping[int, float] | None = None,
    notes: Mapping[str, object] | None = None,
    attributes: Mapping[str, object] | None = None,
) -> FrozenTrial:
    """Convert an ended search point to a finished Optuna trial.

    `course` is its metric by epoch. `notes` and `attributes` become user and system attributes.
    """
    reported = {end.epoch: end.values[0]} if len(end.values) == 1 else {}
    found = create_trial(
        params=point.values,
        distributions={name: distribution(study.dimensions[name]) for name in point.values},
        state=end.state,
        values=end.values if end.state == TrialState.COMPLETE else None,
        intermediate_values={**(course or {}), **reported},
        user_attrs=dict(notes or {}),
        system_attrs=dict(attributes or {}),
    )
    for limit, excess in end.excess.items():
        found.set_constraint(limit, excess)
    return found
