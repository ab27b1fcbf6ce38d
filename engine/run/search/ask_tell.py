"""Connection of a search to Optuna.

It makes samplers and schedulers by name, proposes points, and reports results. Plug-ins may add samplers and
schedulers. With rungs there is an Optuna study for each rung, since values of different rungs are never
compared. The sampler uses the study of the highest rung with enough finished points, as in BOHB (Falkner et
al. 2018). Each study knows all points of the search; points that ended on another rung are failed trials with
a note.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from itertools import islice
from random import Random
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState, create_trial

from ....grammar.nodes import Dimension
from ....plugins import PluginError, Registry, plugin_errors
from ....studies.catalog.samplers import (
    SAMPLERS,
    SCHEDULERS,
    EvolutionSettings,
    PluginSampler,
    TpeSettings,
)
from ....studies.resolve.search_source import SearchSource
from ....studies.schema.search import enumerate_points, is_enumerable
from ....studies.schema.search_settings import SearchSettings
from ....studies.schema.settings import Level
from ....studies.study import Study
from .samplers.evolution import EvolutionSampler
from .samplers.search_observations import (
    ELSEWHERE,
    PerStudyCache,
    PointKey,
    Proposals,
    distribution,
    draw,
    point_key,
    suggest,
    whole_study,
)
from .stored_points import PointEnd, SearchPoint

MakeSampler = Callable[[int], BaseSampler]
"""Makes one of Optuna's samplers from a seed."""


class RestartableSampler(BaseSampler):
    """Sampler that builds a new Optuna sampler for each proposal.

    The seed follows from the seed of the search and the numbers of points and of rejected proposals so far.
    Optuna's samplers keep a random generator between proposals, which a killed search loses. Here a proposal
    depends only on the store: the begun points, and their values. Exceptions of the sampler pass through the
    context `errors`.
    """

    def __init__(
        self, make: MakeSampler, seed: int, errors: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        self._make, self._seed, self._errors = make, seed, errors
        self._proposals = PerStudyCache(Proposals)
        self._current: tuple[optuna.Study, int, BaseSampler] | None = None
        self._first = self._made(0)  # a sampler that cannot be made raises here

    @property
    def genetic(self) -> optuna.samplers.BaseGASampler | None:
        """Return the genetic sampler, such as NSGA-II; None for other samplers."""
        return self._first if isinstance(self._first, optuna.samplers.BaseGASampler) else None

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        with self._errors():
            return self._sampler(study, trial).infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        with self._errors():
            return self._sampler(study, trial).sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401 -- as Optuna has it
        with self._errors():
            sampler = self._sampler(study, trial)
            return sampler.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        with self._errors():
            self._sampler(study, trial).before_trial(study, trial)

    def _sampler(self, study: optuna.Study, trial: FrozenTrial) -> BaseSampler:
        whole = whole_study(study)
        if self._current is None or self._current[0] is not whole or self._current[1] != trial.number:
            proposals = self._proposals.of(whole)
            proposals.read(trial.number)
            seed = Random(f"{self._seed} {proposals.begun} {proposals.tries}").getrandbits(32)
            self._current = whole, trial.number, (sampler := self._made(seed))
            if isinstance(sampler, optuna.samplers.BaseGASampler):
                # Optuna 5.0 orders parents differently in the proposal that selects them: select them first
                sampler.get_parent_population(whole, sampler.get_trial_generation(whole, trial))
        return self._current[2]

    def _made(self, seed: int) -> BaseSampler:
        with warnings.catch_warnings():  # the sampler is experimental, but Optuna's version is pinned
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            return self._make(seed)


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


def make_sampler(settings: SearchSettings, study: Study) -> optuna.samplers.BaseSampler:
    """Return the sampler of a study's search. Raise PluginError if it cannot be made.

    A "grid" search never uses this sampler.
    """
    sampler, seed = settings.sampler, settings.seed
    assert sampler is not None, "reading a study chooses a default"
    make = sampler.build if isinstance(sampler, PluginSampler) else SAMPLERS[sampler.name].make
    if make is not None:
        return RestartableSampler(
            lambda seed: made_by_plugin(SAMPLERS, sampler.name, optuna.samplers.BaseSampler, make, seed),
            seed,
            partial(plugin_errors, SAMPLERS.kind, sampler.name, make),
        )
    if sampler.name == "gp_trees":
        from .samplers.gp_trees import TreeSampler  # noqa: PLC0415 -- loads scipy

        return TreeSampler(study, seed=seed)
    if isinstance(sampler, EvolutionSettings):
        return EvolutionSampler(seed=seed, population=sampler.population, sample=sampler.sample)
    if isinstance(sampler, TpeSettings):
        return RestartableSampler(
            lambda seed: optuna.samplers.TPESampler(
                seed=seed,
                n_startup_trials=sampler.n_startup_trials,
                multivariate=True,
                group=True,  # so that conditional dimensions are also sampled jointly
            ),
            seed,
        )
    optunas = _OPTUNAS[sampler.name]
    return RestartableSampler(lambda seed: optunas(seed, settings.startup), seed)


def restored_attributes(sampler: optuna.samplers.BaseSampler, ended: int) -> dict[str, int]:
    """Return the attributes of a stored point for Optuna's genetic samplers.

    Genetic samplers note the generation on each trial that they propose. For points from the store, the
    generation follows from the order in which they ended: `ended` is the number of points that ended before
    this one. Other samplers need no attribute.
    """
    genetic = sampler.genetic if isinstance(sampler, RestartableSampler) else None
    if genetic is None or genetic.population_size is None:
        return {}
    return {f"{type(genetic).__name__}:generation": ended // genetic.population_size}


_OPTUNAS: dict[str, Callable[[int, int], BaseSampler]] = {
    "random": lambda seed, _: optuna.samplers.RandomSampler(seed=seed),
    # it is never used, because a grid takes points in order
    "grid": lambda seed, _: optuna.samplers.RandomSampler(seed=seed),
    "gp": lambda seed, startup: optuna.samplers.GPSampler(seed=seed, n_startup_trials=startup),
    "nsga2": lambda seed, startup: optuna.samplers.NSGAIISampler(seed=seed, population_size=startup),
}
"""Optuna's samplers without keys, made from a seed and the number of points that are drawn at random."""


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

Values = dict[str, Level]


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Within this context, Optuna logs only errors."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(level)


class AskTell:
    """Proposer of a search's points. It also reports to Optuna how points have ended."""

    @quiet_optuna()
    def __init__(self, study: Study) -> None:
        assert study.search is not None
        self._study, self._search, settings = study, study.search, study.search.settings
        self._sampler = settings.sampler_name
        make = partial(
            optuna.create_study,
            study_name=study.name,  # a pruner may depend on this name, so it must survive a restart
            directions=["maximize" if each.maximise else "minimize" for each in settings.objectives],
            sampler=make_sampler(settings, study),
            pruner=make_pruner(settings),
        )
        self.studies = RungStudies(make, len(study.search.points_by_rung), enough=enough_points(study.search))
        self.unseen = UnseenPoints(study.search, settings.seed)
        self._restored = 0  # number of restored points with a value

    @quiet_optuna()
    def ask_for(self, values: Mapping[str, Level]) -> optuna.Trial:
        """Create an Optuna trial for a search point that no sampler of Optuna has proposed."""
        self.studies.current.enqueue_trial(dict(values))
        trial = self.studies.current.ask()
        self._search.choose(partial(suggest, trial))
        return trial

    @quiet_optuna()
    def propose(
        self, accept: Callable[[Values], SearchPoint | None], begun: int
    ) -> tuple[SearchPoint, optuna.Trial, str] | None:
        """Return a new search point; None if no point is left.

        With the point, return its Optuna trial and its sampler's name. `accept` returns the point with these
        values if it is new, else None. `begun` is the number of points so far.
        """
        for _ in range(REJECTED_PROPOSALS.get(self._sampler, MAX_REJECTED_PROPOSALS)):
            trial = self.studies.current.ask()
            values = self._search.choose(partial(suggest, trial))
            if values in self.unseen and (point := accept(values)) is not None:
                return point, trial, self._sampler
            trial.study.tell(trial, state=TrialState.FAIL)
        drawn = iter(()) if self._sampler == "grid" else self.unseen.draw(begun)
        for left, source in ((drawn, "random"), (self.unseen.in_order(), "grid")):
            for values in left:
                if (point := accept(values)) is not None:
                    return point, self.ask_for(values), source
        return None

    @quiet_optuna()
    def should_prune(self, trial: optuna.Trial, course: Mapping[int, float]) -> bool:
        """Return whether the scheduler prunes a search point.

        The metric of each epoch is reported to the scheduler.
        """
        gives_up = False
        for epoch, value in course.items():
            trial.report(value, epoch)
            gives_up = trial.should_prune()
        return gives_up

    @quiet_optuna()
    def tell(self, point: SearchPoint, end: PointEnd, trial: optuna.Trial | None, judged: int = 0) -> None:
        """Report to Optuna how a search point has ended.

        A point without a trial was restored from the store. `judged` is the last epoch that was reported. If
        a pruned point has a later value, that value is reported as well.
        """
        if trial is None:
            attributes = restored_attributes(self.studies.current.sampler, self._restored)
            self._restored += end.state == TrialState.COMPLETE
            self.studies.add(frozen_trial(self._study, point, end, attributes=attributes), point.rung)
            return
        if end.state == TrialState.PRUNED and judged < end.epoch:
            trial.report(end.values[0], end.epoch)
        if not self.studies.tell(trial, end, point.rung):
            self.studies.add(frozen_trial(self._study, point, end), point.rung)


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


def enough_points(search: SearchSource) -> int:
    """Return the number of ended points on a rung from which a sampler can learn."""
    return max(ENOUGH, len(search.dimensions) + MORE_THAN_DIMENSIONS)


class RungStudies:
    """One Optuna study for each rung of a search. The rung with the smallest budget is first."""

    def __init__(self, make: Callable[[], optuna.Study], rungs: int, *, enough: int) -> None:
        self._studies = [make() for _ in range(rungs)]
        self._complete = [0] * rungs
        self._known = [set[PointKey]() for _ in range(rungs)]
        self._enough = enough

    @property
    def current(self) -> optuna.Study:
        """Return the Optuna study that proposes the next point.

        It is the study of the highest rung with enough ended points. If no rung has enough, return the study
        of the first rung.
        """
        for study, complete in zip(reversed(self._studies), reversed(self._complete), strict=True):
            if complete >= self._enough:
                return study
        return self._studies[0]

    def add(self, found: FrozenTrial, rung: int) -> None:
        """Add an ended search point to the Optuna study of its rung."""
        self._studies[rung].add_trial(found)
        self._complete[rung] += found.state == TrialState.COMPLETE
        self._note_elsewhere(found, rung)

    def tell(self, trial: optuna.Trial, end: PointEnd, rung: int) -> bool:
        """Report to Optuna how a search point (`trial`) ended on a rung.

        Return False if the study of a different rung proposed the point; that study gets no value.
        """
        if trial.study is not self._studies[rung]:
            self._known[self._studies.index(trial.study)].add(point_key(trial.params))
            trial.set_user_attr(ELSEWHERE, True)
            trial.study.tell(trial, state=TrialState.FAIL)
            return False
        for limit, excess in end.excess.items():
            trial.set_constraint(limit, excess)
        trial.study.tell(trial, end.values if end.state == TrialState.COMPLETE else None, state=end.state)
        self._complete[rung] += end.state == TrialState.COMPLETE
        self._note_elsewhere(trial, rung)
        return True

    def _note_elsewhere(self, found: FrozenTrial | optuna.Trial, rung: int) -> None:
        key = point_key(found.params)
        self._known[rung].add(key)
        for study, known in zip(self._studies, self._known, strict=True):
            # so that samplers on this rung know the point and do not propose it
            if key not in known:
                known.add(key)
                study.add_trial(
                    create_trial(
                        params=found.params,
                        distributions=dict(found.distributions),
                        state=TrialState.FAIL,
                        user_attrs={ELSEWHERE: True},
                    )
                )


class UnseenPoints:
    """Source of untried search points.

    It draws them uniformly, or takes them in a fixed order. Draws depend on the search's seed and on the
    number of known points, so that a resumed search repeats them.
    """

    def __init__(self, search: SearchSource, seed: int) -> None:
        self._choose, self._seed = search.choose, seed
        self._space = {name: distribution(each) for name, each in search.dimensions.items()}
        self._is_enumerable = is_enumerable(search.dimensions)
        self._in_order = enumerate_points(search.choose) if self._is_enumerable else iter(())
        self._noted = set[PointKey]()

    def note(self, values: Mapping[str, Level]) -> None:
        """Record that the search point with these values has been tried."""
        self._noted.add(point_key(values))

    def __contains__(self, values: Mapping[str, Level]) -> bool:
        return point_key(values) not in self._noted

    def draw(self, known: int) -> Iterator[Values]:
        """Yield untried search points, drawn uniformly in each dimension.

        The number `known` of points seeds the draw.
        """
        rng = Random(f"{self._seed} {known}")

        def value(name: str, dimension: Dimension) -> Level:
            del dimension
            return draw(self._space[name], rng)

        for _ in range(DRAWN if self._is_enumerable else DRAWN_OF_REALS):
            if (values := self._choose(value)) in self:
                yield values

    def in_order(self) -> Iterator[Values]:
        """Yield the untried points in a fixed order, each once per search.

        Yield none if a dimension has real numbers.
        """
        for values in islice(self._in_order, MAX_ENUMERATED_POINTS):
            if values in self:
                yield values
