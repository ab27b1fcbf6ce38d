"""Optuna's ask-and-tell interface: its studies propose a search's points and receive the results.

With rungs there is an Optuna study for each rung, since values of different rungs are never compared. The
sampler uses the study of the highest rung with enough finished points, as in BOHB (Falkner et al. 2018). Each
study knows all points of the search; points that ended on another rung are failed trials with a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from random import Random

import optuna
from optuna.trial import FrozenTrial, TrialState, create_trial

from ....grammar.nodes import Dimension
from ....studies.resolve.search_points import enumerate_points, is_enumerable
from ....studies.schema.settings import Level
from ....studies.study import Study
from .factories import make_pruner, make_sampler, restored_attributes
from .samplers.search_observations import ELSEWHERE, PointKey, distribution, draw, point_key, suggest
from .stored_points import PointEnd, SearchPoint

ENOUGH, MORE_THAN_DIMENSIONS = 10, 3
"""Samplers learn from a rung that has this many points, and this many more than dimensions."""

MAX_REJECTED_PROPOSALS = 10
"""After this many known proposals in a row, a point is drawn from the untried ones."""

REJECTED_PROPOSALS = {"grid": 0, "random": 0, "evolution": 50}
"""The same for samplers that are never asked, and for one that mutates more after rejected proposals."""

DRAWN, DRAWN_OF_REALS = 200, 2_000
"""The number of draws before untried points are taken in order or, with real dimensions, the search ends."""

MAX_ENUMERATED_POINTS = 100_000
"""A search ends if none of this many points in order is new."""

Values = dict[str, Level]


class AskTell:
    """Proposer of a search's points, which reports to Optuna how they have ended."""

    def __init__(self, study: Study) -> None:
        assert study.search is not None
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._study, self._settings = study, study.search
        make = partial(
            optuna.create_study,
            study_name=study.name,  # by which Hyperband deals points to brackets: the same after a restart
            directions=["maximize" if each.maximise else "minimize" for each in self._settings.objectives],
            sampler=make_sampler(self._settings, study),
            pruner=make_pruner(self._settings),
        )
        self.studies = RungStudies(make, len(study.points_by_rung), enough=enough_points(study))
        self.unseen = UnseenPoints(study, self._settings.seed)
        self._restored = 0  # points that were restored with a value

    def ask_for(self, values: Mapping[str, Level]) -> optuna.Trial:
        """Return Optuna's trial of a point that was chosen already."""
        self.studies.current.enqueue_trial(dict(values))
        trial = self.studies.current.ask()
        self._study.choose(partial(suggest, trial))
        return trial

    def propose(
        self, accept: Callable[[Values], SearchPoint | None], begun: int
    ) -> tuple[SearchPoint, optuna.Trial, str] | None:
        """Return a new point, its Optuna trial and the name of its proposer; None if no point is left.

        `accept` returns the point for new values, else None. `begun` is the number of points so far.
        """
        sampler = self._settings.sampler_name
        for _ in range(REJECTED_PROPOSALS.get(sampler, MAX_REJECTED_PROPOSALS)):
            trial = self.studies.current.ask()
            values = self._study.choose(partial(suggest, trial))
            if values in self.unseen and (point := accept(values)) is not None:
                return point, trial, sampler
            trial.study.tell(trial, state=TrialState.FAIL)
        drawn = iter(()) if sampler == "grid" else self.unseen.draw(begun)
        for left, source in ((drawn, "random"), (self.unseen.in_order(), "grid")):
            for values in left:
                if (point := accept(values)) is not None:
                    return point, self.ask_for(values), source
        return None

    def should_prune(self, trial: optuna.Trial, course: Mapping[int, float]) -> bool:
        """Report a metric by epoch; return whether the scheduler prunes the point."""
        gives_up = False
        for epoch, value in course.items():
            trial.report(value, epoch)
            gives_up = trial.should_prune()
        return gives_up

    def tell(self, point: SearchPoint, end: PointEnd, trial: optuna.Trial | None, judged: int = 0) -> None:
        """Report to Optuna how a point has ended.

        A point without a trial was restored from the store. `judged` is the last epoch that was reported. If
        a pruned point has a later value, that value is reported as well.
        """
        if trial is None:
            attributes = restored_attributes(self.studies.current.sampler, self._restored)
            self._restored += end.state == TrialState.COMPLETE
            self.studies.add(self.frozen(point, end, attributes), point.rung)
            return
        if end.state == TrialState.PRUNED and judged < end.epoch:
            trial.report(end.values[0], end.epoch)
        if not self.studies.tell(trial, end, point.rung):
            self.studies.add(self.frozen(point, end), point.rung)

    def frozen(
        self, point: SearchPoint, end: PointEnd, attributes: Mapping[str, object] | None = None
    ) -> FrozenTrial:
        """Return an ended point as a frozen Optuna trial, with its active dimensions."""
        return frozen_trial(self._study, point, end, attributes=attributes)


def frozen_trial(
    study: Study,
    point: SearchPoint,
    end: PointEnd,
    *,
    course: Mapping[int, float] | None = None,
    notes: Mapping[str, object] | None = None,
    attributes: Mapping[str, object] | None = None,
) -> FrozenTrial:
    """Return an ended point as an Optuna trial, with its metric by epoch, notes and attributes."""
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


def enough_points(study: Study) -> int:
    """Return how many points with a value a rung needs before samplers learn from it."""
    return max(ENOUGH, len(study.dimensions) + MORE_THAN_DIMENSIONS)


class RungStudies:
    """Optuna's studies of a search's rungs, smallest fidelity first."""

    def __init__(self, make: Callable[[], optuna.Study], rungs: int, *, enough: int) -> None:
        self._studies = [make() for _ in range(rungs)]
        self._complete = [0] * rungs
        self._known = [set[PointKey]() for _ in range(rungs)]
        self._enough = enough

    @property
    def current(self) -> optuna.Study:
        """The study from which the sampler proposes."""
        for study, complete in zip(reversed(self._studies), reversed(self._complete), strict=True):
            if complete >= self._enough:
                return study
        return self._studies[0]

    def add(self, found: FrozenTrial, rung: int) -> None:
        """Add a point that has ended on a rung."""
        self._studies[rung].add_trial(found)
        self._complete[rung] += found.state == TrialState.COMPLETE
        self._note_elsewhere(found, rung)

    def tell(self, trial: optuna.Trial, end: PointEnd, rung: int) -> bool:
        """Report how the point of a trial ended on a rung.

        Return False if another rung's study proposed it; that study gets no value.
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
    """The untried points of a study's space: drawn uniformly, or in order.

    Draws depend on the search's seed and on the number of known points, so that a resumed search repeats
    them.
    """

    def __init__(self, study: Study, seed: int) -> None:
        self._choose, self._seed = study.choose, seed
        self._space = {name: distribution(each) for name, each in study.dimensions.items()}
        self._is_enumerable = is_enumerable(study.dimensions)
        self._in_order = enumerate_points(study.choose) if self._is_enumerable else iter(())
        self._noted = set[PointKey]()

    def note(self, values: Mapping[str, Level]) -> None:
        """Mark a point as known."""
        self._noted.add(point_key(values))

    def __contains__(self, values: Mapping[str, Level]) -> bool:
        """Return whether a point is untried."""
        return point_key(values) not in self._noted

    def draw(self, known: int) -> Iterator[Values]:
        """Yield untried points, drawn uniformly in each dimension.

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
        """Yield points in order, each once per search; none if a dimension is real."""
        for values in islice(self._in_order, MAX_ENUMERATED_POINTS):
            if values in self:
                yield values
