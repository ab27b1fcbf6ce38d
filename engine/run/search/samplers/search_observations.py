"""Data that samplers read: the dimensions and ended points of a search.

Points are in the order in which they ended. Each trial is read once. Points also have features, so that
similar recipes have a small distance. The first features count the Weisfeiler-Lehman labels of the recipe's
tree (Shervashidze et al. 2011): a node's name, then the name with its children's labels, and so on.
Neighbours in a series are labels too, following the data flow that Ru et al. (2021) label in networks. The
values of the search's dimensions come after these.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain, pairwise, takewhile
from random import Random
from typing import Any, Generic, TypeVar
from zlib import crc32

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from .....grammar import RecipeError
from .....grammar.dimensions import option_label, resolve
from .....grammar.nodes import (
    BlockNode,
    ChoiceDimension,
    Dimension,
    HoleNode,
    IntegerDimension,
    RealDimension,
    RepeatNode,
    SeriesNode,
    SumNode,
    TiedNode,
    Value,
)
from .....studies.schema.settings import RECIPE_PATH, Level
from .....studies.study import Study


def draw(distribution: BaseDistribution, rng: Random) -> Any:  # noqa: ANN401 -- a value of any kind
    """Draw a value uniformly. For a logarithmic distribution, it is uniform on the logarithmic scale."""
    match distribution:
        case CategoricalDistribution():
            return rng.choice(distribution.choices)
        case IntDistribution(log=False):
            return rng.randrange(distribution.low, distribution.high + 1, distribution.step)
        case IntDistribution() | FloatDistribution():
            return at(distribution, rng.random())
        case _:
            raise TypeError(f"expected a distribution of a search, got {distribution!r}")


def place_of(numbers: IntDistribution | FloatDistribution, value: float) -> float:
    """Return the relative position of a number in its range, from 0 to 1.

    It is 0 at the low end and 1 at the high end. The scale is logarithmic if the range is.
    """
    low, high, value = (_scaled(numbers, each) for each in (numbers.low, numbers.high, value))
    return (value - low) / (high - low)


def at(numbers: IntDistribution | FloatDistribution, place: float) -> float:
    """Return the number at a relative position in its range.

    `place` is 0 at the low end and 1 at the high end, as in `place_of`.
    """
    low, high = _scaled(numbers, numbers.low), _scaled(numbers, numbers.high)
    value = low + place * (high - low)
    # because of rounding, exp(log(x)) may lie slightly outside of the range
    value = min(max(math.exp(value) if numbers.log else value, numbers.low), numbers.high)
    if isinstance(numbers, FloatDistribution):
        return value
    return numbers.low + round((value - numbers.low) / numbers.step) * numbers.step


def _scaled(numbers: IntDistribution | FloatDistribution, value: float) -> float:
    return math.log(value) if numbers.log else value


def suggest(trial: optuna.Trial, name: str, dimension: Dimension) -> Level:
    """Ask Optuna for the value of one dimension of a trial. The other dimensions need not be defined."""
    match dimension:
        case IntegerDimension():
            return trial.suggest_int(
                name, dimension.low, _aligned_high(dimension), step=dimension.step, log=dimension.log
            )
        case RealDimension():
            return trial.suggest_float(name, dimension.low, dimension.high, log=dimension.log)
        case _:
            found = trial.suggest_categorical(name, _labels(dimension))
            assert found is not None, "no option of a choice is None"
            return found


def distribution(dimension: Dimension) -> BaseDistribution:
    """Return the Optuna distribution for a dimension of a search."""
    match dimension:
        case IntegerDimension():
            return IntDistribution(
                dimension.low, _aligned_high(dimension), log=dimension.log, step=dimension.step
            )
        case RealDimension():
            return FloatDistribution(dimension.low, dimension.high, log=dimension.log)
        case _:
            return CategoricalDistribution(_labels(dimension))


def _labels(choice: ChoiceDimension) -> list[Level]:
    return [option_label(option) for option in choice.options]


def _aligned_high(dimension: IntegerDimension) -> int:
    return dimension.high - (dimension.high - dimension.low) % dimension.step


PointKey = frozenset[tuple[str, Any]]
"""The key of a point; equal points have equal keys."""

ELSEWHERE = "elsewhere"
"""The attribute of a trial whose point ended on another rung: it counts as begun, but has no value here."""


ENDED = (TrialState.COMPLETE, TrialState.PRUNED)
"""The states of trials whose points have ended."""

KnownT = TypeVar("KnownT")


def point_key(values: Mapping[str, Any]) -> PointKey:
    """Return a key of a search point's values that does not depend on their order."""
    return frozenset(values.items())


def whole_study(study: optuna.Study) -> optuna.Study:
    """Return the whole Optuna study. A plug-in's pruner may pass a view of a part of it, as Hyperband's."""
    return getattr(study, "_study", study)  # Optuna has no public way from a view to its study


class PerStudyCache(Generic[KnownT]):
    """Cache of what a sampler computes from an Optuna study.

    It holds the result for one study at a time. A search with rungs has several studies.
    """

    def __init__(self, make: Callable[[optuna.Study], KnownT]) -> None:
        self._make = make
        self._last: tuple[optuna.Study, KnownT] | None = None

    def of(self, study: optuna.Study) -> KnownT:
        """Return the result for a study. It is computed again if the last call was for a different study."""
        whole = whole_study(study)
        if self._last is None or self._last[0] is not whole:
            self._last = whole, self._make(whole)
        return self._last[1]


@dataclass(frozen=True, slots=True)
class EndedPoint:
    """An ended search point, and how good it is.

    `goodness` is higher for better points. Pruned points are worse than all others. Among them, points pruned
    later are better, and then points with the better value. `excess` is the distance beyond limits, which
    `worth` compares first.
    """

    values: dict[str, Any]
    goodness: tuple[bool, int, float]
    excess: float = 0.0

    @property
    def worth(self) -> tuple[float, tuple[bool, int, float]]:
        """Return the sort key for a search with limits, highest for the best point.

        The distance beyond the limits is compared first, and then the goodness.
        """
        return -self.excess, self.goodness


def best_and_last(ended: Sequence[EndedPoint], *, best: int, last: int) -> list[EndedPoint]:
    """Return the `last` newest search points, and the `best` of the older ones, in the order of ending."""
    earlier = max(0, len(ended) - last)
    chosen = sorted(range(earlier), key=lambda place: ended[place].worth)[-best:]
    return [*(ended[place] for place in sorted(chosen)), *ended[earlier:]]


class Proposals:
    """Record of a search's begun points and rejected proposals.

    Only rejections since the last point began are kept. A point counts as begun on whichever rung it is
    trained. A point with a failed training counts as rejected.
    """

    def __init__(self, study: optuna.Study) -> None:
        self._study, self._end = study, 0
        self._open = dict[int, PointKey]()  # by the index of unfinished trials
        self._here, self._elsewhere = Counter[PointKey](), set[PointKey]()
        self._rejected = Counter[PointKey]()  # rejected since the last point began

    def __contains__(self, key: PointKey) -> bool:
        """Return whether a search point has begun or was recently rejected.

        Recently is since the last point began.
        """
        return self._here[key] > 0 or key in self._elsewhere or key in self._rejected

    @property
    def begun(self) -> int:
        """Return the number of begun search points."""
        return self._here.total() + len(self._elsewhere)

    @property
    def tries(self) -> int:
        """Return how many proposals were rejected since the last search point began."""
        return self._rejected.total()

    def read(self, before: int) -> list[FrozenTrial]:
        """Return the trials that are new or may have ended since the last call.

        Only trials with a number below `before` are read.
        """
        trials, end = self._study.get_trials(deepcopy=False), self._end
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


class SearchObservations(Proposals):
    """The ended points of a search, and its points in training. The search has one objective."""

    def __init__(self, study: optuna.Study) -> None:
        super().__init__(study)
        self._sign = 1 if study.direction == StudyDirection.MAXIMIZE else -1
        self.ended: list[EndedPoint] = []
        self.training: list[dict[str, Any]] = []

    def learn(self, before: int) -> None:
        """Read the Optuna trials that are new or have ended since the last call.

        Only trials with a number below `before` are read.
        """
        found = self.read(before)
        self.training = [each.params for each in found if not each.state.is_finished()]
        for trial in sorted(found, key=when_ended):
            if trial.state in ENDED:
                excess = sum(max(0.0, each) for each in trial.constraints.values())
                self.ended.append(EndedPoint(trial.params, goodness(trial, self._sign), excess))


def goodness(trial: FrozenTrial, sign: int) -> tuple[bool, int, float]:
    """Return a sort key for an ended Optuna trial, highest for the best.

    `sign` is -1 if lower values of the objective are better, else 1.
    """
    if trial.state == TrialState.COMPLETE:
        assert trial.value is not None, "a complete trial has a value"
        return True, 0, sign * trial.value
    last = trial.last_step
    return (False, -1, 0.0) if last is None else (False, last, sign * trial.intermediate_values[last])


def when_ended(trial: FrozenTrial) -> tuple[float, int]:
    """Return a sort key for the order in which trials ended. Unfinished trials come first."""
    return trial.datetime_complete.timestamp() if trial.datetime_complete else 0.0, trial.number


Numbers = NDArray[np.float64]

ROUNDS = 2
"""The number of rounds in which a node's label absorbs its children's labels."""

PLACES = 512
"""The number of hashed features of a tree."""

_KEPT = 1024
"""The number of points whose features are cached."""

_MAX_COPIES = 8
"""The maximum number of copies of a repeat that are labelled."""

Labels = tuple[int, ...]
"""A node's labels after each round."""


class RecipeFeatures:
    """Features of search points, as rows of numbers.

    The first features describe the recipe's tree, and the others the values of the dimensions.
    """

    def __init__(self, study: Study) -> None:
        self._template = study.template
        recipe = self._template.expand(self._template.texts[RECIPE_PATH])
        self._root, self._has_dimensions = recipe.root, bool(recipe.dimensions)
        self._fixed = {name: levels[0] for name, levels in study.factors.items()}
        self._fillings: dict[Level, Value] = {}
        self._values = {name: _ValuePlaces(dimension) for name, dimension in study.dimensions.items()}
        ends = list(accumulate((each.size for each in self._values.values()), initial=PLACES))
        self._begins, self.size = dict(zip(self._values, ends, strict=False)), ends[-1]
        self._known: dict[frozenset[tuple[str, Level]], Numbers] = {}

    def of(self, points: Sequence[Mapping[str, Level]]) -> Numbers:
        """Return the feature matrix of search points, a row for each."""
        keys = [frozenset(values.items()) for values in points]
        new = {key: values for key, values in zip(keys, points, strict=True) if key not in self._known}
        if len(self._known) + len(new) > _KEPT:
            self._known = {key: self._known[key] for key in keys if key in self._known}
        if new:
            self._known |= zip(new, self._rows(list(new.values())), strict=True)
        return np.array([self._known[key] for key in keys]).reshape(-1, self.size)

    def _rows(self, points: Sequence[Mapping[str, Level]]) -> Numbers:
        found, counts = np.zeros((len(points), self.size)), [self.labels(each) for each in points]
        labels = np.array([*chain.from_iterable(counts)], dtype=np.int64)
        occurs = np.array([*chain.from_iterable(each.values() for each in counts)], dtype=np.float64)
        places = labels % PLACES + np.repeat(PLACES * np.arange(len(points)), [len(each) for each in counts])
        counted = np.bincount(places, weights=occurs, minlength=PLACES * len(points))
        # square roots keep frequent labels from dominating the distances
        np.sqrt(counted.reshape(-1, PLACES), out=found[:, :PLACES])
        for row, values in enumerate(points):
            for name, value in values.items():
                begin = self._begins[name]
                for place, number in self._values[name].of(value):
                    found[row, begin + place] = number
        return found

    def labels(self, values: Mapping[str, Level]) -> dict[int, int]:
        """Count the Weisfeiler-Lehman labels in a search point's recipe."""
        levels, root = {**self._fixed, **values}, self._root
        if self._has_dimensions:
            root = resolve(root, levels.get)
        walk = _LabelWalk(lambda name: self._filling(levels[name]))
        walk.node(root)
        return walk.counts

    def _filling(self, level: Level) -> Value:
        """Parse the value of a dimension, such as an option of a choice, as a recipe.

        Return the value itself if it is no recipe.
        """
        if level not in self._fillings:
            try:
                self._fillings[level] = self._template.expand(str(level)).root
            except RecipeError:
                self._fillings[level] = level
        return self._fillings[level]


class _LabelWalk:
    def __init__(self, filling: Callable[[str], Value]) -> None:
        self._filling = filling
        self.counts: dict[int, int] = {}
        self._times = 1  # number of copies of the visited node

    def node(self, node: Value) -> Labels:
        """Return the labels of a node in the recipe's tree. The labels of all nodes inside it are counted."""
        match node:
            case HoleNode():
                return self.node(self._filling(node.name))
            case BlockNode():
                arguments = [(name, self._filled(value)) for name, value in node.arguments]
                return self._label(
                    node.name, [self._label(each, [self.node(value)]) for each, value in arguments]
                )
            case SumNode():
                return self._label("+", sorted(self.node(part) for part in node.parts))
            case SeriesNode() | RepeatNode():
                parts = self.parts(node)
                self._count([hash((before[1], after[1])) for before, after in pairwise(parts)])
                return self._label(">>", parts)
            case TiedNode():
                return self._label("tied", [self.node(node.body)])
            case _:  # all real numbers are alike, because the exact value of one would match nothing
                return (_hash("real" if isinstance(node, float) else str(node)),) * (ROUNDS + 1)

    def _filled(self, value: Value) -> Value:
        return self._filling(value.name) if isinstance(value, HoleNode) else value

    def parts(self, node: Value) -> list[Labels]:
        """Return the labels of each part of a series. Each copy of a repeated part counts."""
        match node:
            case HoleNode():
                return self.parts(self._filling(node.name))
            case SeriesNode():
                return [labels for part in node.parts for labels in self.parts(part)]
            case RepeatNode():
                count = self._filled(node.count)
                copies = min(int(count), _MAX_COPIES) if isinstance(count, int) else 1
                self._times, outside = self._times * copies, self._times
                parts = self.parts(node.body)
                self._times = outside
                return parts * copies
            case _:
                return [self.node(node)]

    def _label(self, name: str, inner: Sequence[Labels]) -> Labels:
        labels = [_hash(name)]
        for place in range(ROUNDS):
            labels.append(hash((labels[-1], *[each[place] for each in inner])))
        self._count(labels)
        return tuple(labels)

    def _count(self, labels: Iterable[int]) -> None:
        counts, times = self.counts, self._times
        for label in labels:
            counts[label] = counts.get(label, 0) + times


class _ValuePlaces:
    def __init__(self, dimension: Dimension) -> None:
        options = dimension.options if isinstance(dimension, ChoiceDimension) else ()
        self._places = {option_label(option): place for place, option in enumerate(options)}
        self.size = len(options) or 2
        if not isinstance(dimension, ChoiceDimension):
            self._log = dimension.log
            low, high = (math.log(end) if dimension.log else end for end in (dimension.low, dimension.high))
            self._low, self._turn = low, math.pi / 2 / (high - low or 1)

    def of(self, value: Level) -> list[tuple[int, float]]:
        """Return the nonzero features of a dimension's value, as (index, number).

        An option is one-hot. A number becomes an angle in a quarter circle, given by its cosine and sine.
        """
        if self._places:
            return [(self._places[value], 1.0)]
        angle = self._turn * ((math.log(float(value)) if self._log else float(value)) - self._low)
        return [(0, math.cos(angle)), (1, math.sin(angle))]


@cache
def _hash(text: str) -> int:
    # Python's hash of a text differs between processes; its hash of whole numbers does not
    return crc32(text.encode())
