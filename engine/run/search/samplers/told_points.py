"""The points of a search in the order in which they ended, read from Optuna as they come.

Each is read once, so that asking for a point takes no longer after ten thousand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Generic, TypeVar, overload

import optuna
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

PointKey = frozenset[tuple[str, Any]]
"""What equal points have in common."""

ELSEWHERE = "elsewhere"
"""What is noted of a trial which stands for a point that has ended on another rung: it has begun, no more."""


ENDED = (TrialState.COMPLETE, TrialState.PRUNED)
"""How trials are that points have ended with."""

KnownT = TypeVar("KnownT")


def point_key(values: Mapping[str, Any]) -> PointKey:
    """The values, whatever their order."""
    return frozenset(values.items())


def whole_study(study: optuna.Study) -> optuna.Study:
    """The study of which Hyperband shows a bracket; all of Optuna's own samplers look at the whole."""
    return getattr(study, "_study", study)


class TrialsOfStudy(Sequence[FrozenTrial]):
    """The trials of a study in the order of their numbers, as far as `read` has counted them.

    Each is read when it is asked for: lists that Optuna gives are copies of all, and take longer with each
    trial. A bracket of Hyperband's, which has some of a study's trials, is read whole.
    """

    def __init__(self, study: optuna.Study) -> None:
        self.study, self._count = study, 0
        self._of_bracket: list[FrozenTrial] | None = None if whole_study(study) is study else []

    def read(self) -> None:
        """Look for new trials."""
        if self._of_bracket is not None:
            self._of_bracket = self.study.get_trials(deepcopy=False)
            self._count = len(self._of_bracket)
            return
        with suppress(KeyError):
            while self._id(self._count) >= 0:
                self._count += 1

    def _id(self, number: int) -> int:
        """Optuna's id of a trial; raises KeyError if there is none of this number."""
        study = self.study
        return study._storage.get_trial_id_from_study_id_trial_number(study._study_id, number)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> FrozenTrial: ...
    @overload
    def __getitem__(self, place: slice) -> list[FrozenTrial]: ...
    def __getitem__(self, place: int | slice) -> FrozenTrial | list[FrozenTrial]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(self._count))]
        number = range(self._count)[place]
        if self._of_bracket is not None:
            return self._of_bracket[number]
        return self.study._storage.get_trial(self._id(number))


class KnownOfShown(Generic[KnownT]):
    """What is known of the study that a sampler is shown; Hyperband shows another for each bracket."""

    def __init__(self, make: Callable[[optuna.Study], KnownT]) -> None:
        self._make = make
        self._last: tuple[optuna.Study, KnownT] | None = None

    def of(self, study: optuna.Study) -> KnownT:
        """What is known of a study, made anew if it is not the last that was shown."""
        if self._last is None or self._last[0] is not study:
            self._last = study, self._make(study)
        return self._last[1]


@dataclass(frozen=True, slots=True)
class EndedPoint:
    """A point that has ended; of two the better one has the greater `goodness`.

    Those that were given up are worse than all others: those given up later are better, and then the value
    that each had then. `excess` is how far it is beyond limits, and `worth` counts that first.
    """

    values: dict[str, Any]
    goodness: tuple[bool, int, float]
    excess: float = 0.0

    @property
    def worth(self) -> tuple[float, tuple[bool, int, float]]:
        """What the better point has more of where there are limits."""
        return -self.excess, self.goodness


class BestAndLast:
    """So many of the last of the points that have ended, and of those before so many of the best."""

    def __init__(self, *, best: int, last: int) -> None:
        self._most, self._last = best, last
        self._best: list[int] = []  # their places
        self._read = 0

    def of(self, ended: Sequence[EndedPoint]) -> list[EndedPoint]:
        """Those of all points so far, which begin with those of the last call, in their order."""
        earlier = max(0, len(ended) - self._last)
        places = [*self._best, *range(self._read, earlier)]
        self._best = sorted(sorted(places, key=lambda place: ended[place].worth)[-self._most :])
        self._read = earlier
        return [*(ended[place] for place in self._best), *ended[earlier:]]


class Proposals:
    """Which points of a search have begun, on whichever rung, and what was proposed since and is none.

    A proposal that was rejected is none, nor is a point whose training failed.
    """

    def __init__(self, study: optuna.Study) -> None:
        self.trials = TrialsOfStudy(study)
        self._end = 0
        self._open = dict[int, PointKey]()  # by the places of the trials that have not ended
        self._here, self._elsewhere = Counter[PointKey](), set[PointKey]()
        self._rejected = Counter[PointKey]()  # since the last point has begun

    def __contains__(self, key: PointKey) -> bool:
        """Whether a point has begun, or been rejected since the last that has."""
        return self._here[key] > 0 or key in self._elsewhere or key in self._rejected

    @property
    def begun(self) -> int:
        """The number of points."""
        return self._here.total() + len(self._elsewhere)

    @property
    def tries(self) -> int:
        """The number of proposals since the last point has begun."""
        return self._rejected.total()

    def read(self, before: int) -> list[FrozenTrial]:
        """Take note of what is new among the trials of lower numbers: those that were open, and new ones."""
        trials, end = self.trials, self._end
        trials.read()
        while end < len(trials) and trials[end].number < before:
            end += 1
        places = [*self._open, *range(self._end, end)]
        self._end = end
        found = [trials[place] for place in places]
        for place, trial in zip(places, found, strict=True):
            self._take(place, trial)
        latest = (trials[place] for place in range(end - 1, -1, -1))
        self._rejected = Counter(point_key(each.params) for each in takewhile(_is_no_point, latest))
        return found

    def _take(self, place: int, trial: FrozenTrial) -> None:
        """Take note of how a trial stands."""
        key = point_key(trial.params)
        if place in self._open:
            self._here[self._open.pop(place)] -= 1
        if _is_no_point(trial):
            return
        if trial.state == TrialState.FAIL:
            self._elsewhere |= set() if self._here[key] else {key}
            return
        self._here[key] += 1
        self._elsewhere.discard(key)
        if not trial.state.is_finished():
            self._open[place] = key


def _is_no_point(trial: FrozenTrial) -> bool:
    return trial.state == TrialState.FAIL and ELSEWHERE not in trial.user_attrs


class ToldPoints:
    """What a study of Optuna's, of one objective, has been told."""

    def __init__(self, study: optuna.Study) -> None:
        self.study, self._proposals = study, Proposals(study)
        self.ended: list[EndedPoint] = []
        self._training: list[FrozenTrial] = []

    def __contains__(self, key: PointKey) -> bool:
        """Whether a point has begun, or been rejected since the last that has."""
        return key in self._proposals

    @property
    def begun(self) -> int:
        """The number of points."""
        return self._proposals.begun

    @property
    def tries(self) -> int:
        """The number of proposals since the last point has begun."""
        return self._proposals.tries

    @property
    def training(self) -> list[dict[str, Any]]:
        """The points that have not ended."""
        return [each.params for each in self._training]

    def read(self, before: int) -> None:
        """Take note of what is new among the trials of lower numbers."""
        found = self._proposals.read(before)
        self._training = [each for each in found if not each.state.is_finished()]
        sign = 1 if self.study.direction == StudyDirection.MAXIMIZE else -1
        for trial in sorted(found, key=when_ended):
            if trial.state in ENDED:
                excess = sum(max(0.0, each) for each in trial.constraints.values())
                self.ended.append(EndedPoint(trial.params, goodness(trial, sign), excess))


def goodness(trial: FrozenTrial, sign: int) -> tuple[bool, int, float]:
    """How good an ended trial is."""
    if trial.state == TrialState.COMPLETE:
        assert trial.value is not None, "a trial that is complete"
        return True, 0, sign * trial.value
    last = trial.last_step
    return (False, -1, 0.0) if last is None else (False, last, sign * trial.intermediate_values[last])


def when_ended(trial: FrozenTrial) -> tuple[float, int]:
    """By what trials are in the order in which they ended, those first that have not."""
    return trial.datetime_complete.timestamp() if trial.datetime_complete else 0.0, trial.number
