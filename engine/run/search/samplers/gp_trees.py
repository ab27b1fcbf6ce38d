"""Bayesian optimisation with a Gaussian process over trees of recipes.

As in NAS-BOWL (Ru et al. 2021), points are similar if the Weisfeiler-Lehman labels of their trees are, and
candidates are mutations of the best points. Most candidates are kept until the hyperparameters of the process
are chosen again. Values are replaced by their ranks, so that an outlier does not distort the model. A
proposal depends only on the ended points, in the order in which they ended, and on the begun ones. So a
killed search with one worker continues as if it had not been killed.

Points have features, so that similar recipes have a small distance. The first features count the
Weisfeiler-Lehman labels of the recipe's tree (Shervashidze et al. 2011): a node's name, then the name with
its children's labels, and so on. Neighbours in a series are labels too, following the data flow that Ru et
al. (2021) label in networks. The values of the search's dimensions come after these.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from itertools import accumulate, islice, pairwise, product
from random import Random
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from optuna.trial import TrialState
from scipy.linalg import solve_triangular
from scipy.special import ndtr, ndtri

from .....grammar import RecipeError
from .....grammar.canonical import option_label
from .....grammar.dimensions import resolve
from .....grammar.nodes import (
    BlockNode,
    ChoiceDimension,
    Dimension,
    HoleNode,
    RepeatNode,
    SeriesNode,
    SumNode,
    TiedNode,
    Value,
)
from .....studies.catalog.samplers import SAMPLERS
from .....studies.schema.settings import RECIPE_PATH, Level
from .....studies.study import Study
from .evolution import PointChanges, cross
from .search_observations import Proposals, Values, ValuesKey, distribution, draw, values_key

if TYPE_CHECKING:
    from .....studies.schema.search_settings import SearchObjective
    from ..stored_points import PointEnd

Numbers = NDArray[np.float64]
Goodness = tuple[bool, int, float]

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
    """Features of search points, as rows of numbers: of the recipe's tree, then of the dimensions' values."""

    def __init__(self, study: Study) -> None:
        self._template = study.template
        recipe = self._template.expand(self._template.texts[RECIPE_PATH])
        self._root, self._has_dimensions = recipe.root, bool(recipe.dimensions)
        self._fixed = {name: levels[0] for name, levels in study.factors.items()}
        self._fillings: dict[Level, Value] = {}
        self._values = {name: _ValuePlaces(dimension) for name, dimension in study.dimensions.items()}
        ends = list(accumulate((each.size for each in self._values.values()), initial=PLACES))
        self._begins, self.size = dict(zip(self._values, ends, strict=False)), ends[-1]
        self._known: dict[ValuesKey, Numbers] = {}

    def of(self, points: Sequence[Mapping[str, Level]]) -> Numbers:
        """Return the feature matrix of search points, a row for each."""
        keys = [values_key(values) for values in points]
        new = {key: values for key, values in zip(keys, points, strict=True) if key not in self._known}
        if len(self._known) + len(new) > _KEPT:
            self._known = {key: self._known[key] for key in keys if key in self._known}
        self._known |= {key: self._row(values) for key, values in new.items()}
        return np.array([self._known[key] for key in keys]).reshape(-1, self.size)

    def _row(self, values: Mapping[str, Level]) -> Numbers:
        row = np.zeros(self.size)
        for label, count in self.labels(values).items():
            row[label % PLACES] += count
        np.sqrt(row, out=row)  # keeps frequent labels from dominating the distances
        for name, value in values.items():
            for place, number in self._values[name].of(value):
                row[self._begins[name] + place] = number
        return row

    def labels(self, values: Mapping[str, Level]) -> dict[int, int]:
        """Count the Weisfeiler-Lehman labels in a search point's recipe."""
        levels, root = {**self._fixed, **values}, self._root
        if self._has_dimensions:
            root = resolve(root, levels.get)
        walk = _LabelWalk(lambda name: self._filling(levels[name]))
        walk.node(root)
        return walk.counts

    def _filling(self, level: Level) -> Value:
        """Parse a dimension's value, such as an option, as a recipe; return the value if it is none."""
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


@dataclass(frozen=True, slots=True)
class EndedPoint:
    """An ended search point, and how good it is.

    `goodness` is higher for better points. Pruned points are worse than all others. Among them, points pruned
    later are better, and then points with the better value.
    """

    values: Values
    goodness: Goodness


def best_and_last(ended: Sequence[EndedPoint], *, best: int, last: int) -> list[EndedPoint]:
    """Return the `last` newest search points, and the `best` of the older ones, in the order of ending."""
    earlier = max(0, len(ended) - last)
    chosen = sorted(range(earlier), key=lambda place: ended[place].goodness)[-best:]
    return [*(ended[place] for place in sorted(chosen)), *ended[earlier:]]


def goodness(end: PointEnd, objective: SearchObjective) -> Goodness:
    """Return a sort key for a complete or pruned search point, highest for the best."""
    is_complete = end.state == TrialState.COMPLETE
    return is_complete, 0 if is_complete else end.epoch, objective.sign * end.values[0]


def squared_distances(first: Numbers, second: Numbers) -> Numbers:
    """Return the squared distances between the rows of two matrices."""
    lengths = (first**2).sum(1)[:, None] + (second**2).sum(1)[None]
    # rounding may make a distance of 0 slightly negative
    return np.maximum(lengths - 2 * first @ second.T, 0.0)


class GaussianProcess:
    """A Gaussian process with mean zero, fitted to noisy values at points.

    `points` has an array for each group of features, with a row for each point. `lengths` has the length
    scale of each group, and `noise` is the variance of the noise divided by that of the signal. The variance
    of the signal is the one that makes the values most likely.
    """

    def __init__(
        self, points: Sequence[Numbers], values: Numbers, *, lengths: Sequence[float], noise: float
    ) -> None:
        self.lengths, self.noise, self._values = tuple(lengths), noise, values
        self._points = self._scaled(points)
        groups = zip(points, lengths, strict=True)
        distances = [squared_distances(each, each) / length**2 for each, length in groups]
        # the noise also keeps the matrix positive definite if two points are equal
        covariance = np.exp(-0.5 * reduce(np.add, distances)) + noise * np.eye(len(values))
        self._root = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
        self._whitened = solve_triangular(self._root, values, lower=True, check_finite=False)
        self._signal = (self._whitened @ self._whitened) / len(values)

    def log_likelihood(self) -> float:
        """Return the log marginal likelihood of the values, up to a constant."""
        # values that are all 0 would have no logarithm
        signal = max(self._signal, 1e-300)
        return float(-np.log(np.diag(self._root)).sum() - len(self._values) / 2 * math.log(signal))

    def predict(self, points: Sequence[Numbers]) -> tuple[Numbers, Numbers]:
        """Return the means and the standard deviations of the values at points, without noise."""
        across = np.exp(-0.5 * squared_distances(self._points, self._scaled(points)))
        inner = solve_triangular(self._root, across, lower=True, check_finite=False)
        # rounding may make a variance near 0 slightly negative
        variances = self._signal * np.maximum(1 - (inner**2).sum(0), 1e-12)
        return inner.T @ self._whitened, np.sqrt(variances)

    def smooth(self) -> Numbers:
        """Return the posterior mean at the observed points."""
        solved = solve_triangular(self._root, self._whitened, lower=True, trans=1, check_finite=False)
        return self._values - self.noise * solved

    def _scaled(self, points: Sequence[Numbers]) -> Numbers:
        return np.hstack([each / length for each, length in zip(points, self.lengths, strict=True)])


def likeliest(
    points: Sequence[Numbers], values: Numbers, lengths: Sequence[Sequence[float]], noises: Sequence[float]
) -> GaussianProcess:
    """Return the process under which the values are most likely.

    All combinations of noise and of the length scales of each group of features are tried.
    """
    grid = product(*lengths, noises)
    found = (GaussianProcess(points, values, lengths=each, noise=noise) for *each, noise in grid)
    return max(found, key=GaussianProcess.log_likelihood)


DRAWN = int(SAMPLERS["gp_trees"].startup)
"""The number of random points before the Gaussian process proposes points."""

POOL_DRAWN, POOL_CHANGED = 64, 192
"""The numbers of random candidates and of mutated best points in the pool, which is renewed with the
hyperparameters."""

REFINED = 4
"""Each time this many points have begun, and after each rejection, one proposal gets extra candidates."""

PARENTS, CHILDREN = 8, 6
"""The extra candidates: `CHILDREN` mutations of the `PARENTS` best points, and of as many best candidates."""

CROSSOVER, ANOTHER_CHANGE = 0.25, 0.3
"""The share of candidates that are made by crossover, and the share that is mutated once more."""

WINDOW, KEPT = 128, 64
"""The process is fitted to at most `WINDOW` points: the `KEPT` best ones, and the latest ones."""

GROWTH, RENEWAL = 0.25, 64
"""Hyperparameters are chosen again when the number of ended points has grown by this share, or by this
number."""

LENGTHS, NOISES = (0.5, 1.0, 2.0, 4.0), (1e-2, 1e-1)
"""The grid of hyperparameters: length scales in median distances of the points, and noise relative to the
signal."""

_LEAST_DEVIATION = 1e-12
"""The lowest standard deviation of a prediction; it would be 0 where all values are equal."""

_ROOT = math.sqrt(2 * math.pi)


class TreeSampler:
    """Sampler that proposes the point with the highest expected improvement.

    It is for one search with one objective. The value of a point that is still in training is assumed to be
    the average.
    """

    def __init__(self, study: Study, *, seed: int) -> None:
        assert study.search is not None
        (self._objective,) = study.search.settings.objectives
        self._space = {name: distribution(each) for name, each in study.dimensions.items()}
        self._choose, self._seed = study.search.choose, seed
        self._changes = PointChanges(self._space)
        choices = (name for name, each in study.dimensions.items() if isinstance(each, ChoiceDimension))
        self._choices = tuple(choices)  # dimensions that decide which other dimensions are active
        self._features = RecipeFeatures(study)
        self._ended: list[EndedPoint] = []
        self._renewed = self._read = 0  # the numbers of ended points at the last renewal, and so far
        self._members: list[EndedPoint] = []  # the points to which the process is fitted
        self._scores = np.empty(0)
        self._process: GaussianProcess
        self._pool: list[Values]
        self._highest = 0.0

    def learn(self, values: Values, end: PointEnd) -> None:
        if end.state != TrialState.FAIL:
            self._ended.append(EndedPoint(values, goodness(end, self._objective)))

    def propose(self, proposals: Proposals) -> Values:
        rng = proposals.random(self._seed)
        drawn = self._completed({}, rng)
        if len(self._ended) < DRAWN:
            return drawn
        self._fit(proposals.training)
        promising = list(islice(self._ranked(self._pool, proposals), PARENTS))
        if promising and not proposals.rejected and proposals.begun % REFINED:
            return promising[0]
        parents = self._best(), promising or self._best()
        points = [self._child(each, rng) for each in parents for _ in range(CHILDREN)]
        if not proposals.rejected:  # otherwise rejected points would be proposed again
            points += promising[:1]
        return next(self._ranked(points, proposals), drawn)

    def _fit(self, training: Sequence[Values]) -> None:
        """Fit the process to all points. Now and then, renew the hyperparameters and the candidates."""
        renewed = last_renewal(len(self._ended))
        if renewed != self._renewed:
            self._read = self._renewed = renewed
            self._members = []
            self._take(best_and_last(self._ended[:renewed], best=KEPT, last=WINDOW - KEPT))
            self._process = self._likeliest()
            rng, best = Random(f"{self._seed} pool {renewed}"), self._best()
            self._pool = [self._completed({}, rng) for _ in range(POOL_DRAWN)]
            self._pool += [self._child(best, rng) for _ in range(POOL_CHANGED)]
        self._take(self._ended[self._read :])
        self._read = len(self._ended)
        members = [each.values for each in self._members]
        kernel = {"lengths": self._process.lengths, "noise": self._process.noise}
        self._process = GaussianProcess(self._groups(members), self._scores, **kernel)
        self._highest = float(self._process.smooth().max())
        if training:
            # 0 is the mean of all scores
            values = np.concatenate([self._scores, np.zeros(len(training))])
            self._process = GaussianProcess(self._groups([*members, *training]), values, **kernel)

    def _take(self, points: Sequence[EndedPoint]) -> None:
        self._members += points
        if points:
            self._scores = normal_scores([each.goodness for each in self._members])

    def _likeliest(self) -> GaussianProcess:
        groups = self._groups([each.values for each in self._members])
        middles = [math.sqrt(float(np.median(squared_distances(each, each))) or 1.0) for each in groups]
        lengths = [[factor * middle for factor in LENGTHS] for middle in middles]
        return likeliest(groups, self._scores, lengths, NOISES)

    def _groups(self, points: Sequence[Values]) -> list[Numbers]:
        rows = self._features.of(points)
        return [rows[:, :PLACES], rows[:, PLACES:]]

    def _best(self) -> list[Values]:
        """Return the best observed search points, the best one first."""
        order = np.argsort(-self._scores, kind="stable")
        return [self._members[place].values for place in order[:PARENTS].tolist()]

    def _ranked(self, candidates: Sequence[Values], proposals: Proposals) -> Iterator[Values]:
        """Yield candidates by falling expected improvement, each once and none that was proposed before."""
        means, deviations = self._process.predict(self._groups(candidates))
        deviations = np.maximum(deviations, _LEAST_DEVIATION)
        distances = (means - self._highest) / deviations
        densities = np.exp(-0.5 * distances**2) / _ROOT
        expected = deviations * (distances * ndtr(distances) + densities)
        met = set[ValuesKey]()
        for place in np.argsort(-expected, kind="stable").tolist():
            key = values_key(values := candidates[place])
            if key not in proposals and key not in met:
                met.add(key)
                yield values

    def _child(self, parents: Sequence[Values], rng: Random) -> Values:
        parent = values = rng.choice(parents)
        if rng.random() < CROSSOVER:
            values = cross(values, rng.choice(parents), rng)
        values = self._changes.of(values, rng)
        while rng.random() < ANOTHER_CHANGE:
            values = self._changes.of(values, rng)
        is_whole = values.keys() == parent.keys() and all(
            values.get(name) == parent.get(name) for name in self._choices
        )
        return values if is_whole else self._completed(values, rng)

    def _completed(self, values: Mapping[str, Level], rng: Random) -> Values:
        """Make these values a valid search point: drop inactive dimensions, and draw missing active ones."""
        return self._choose(lambda name, _: values[name] if name in values else draw(self._space[name], rng))


def last_renewal(ended: int) -> int:
    """Return how many points had ended when the kernel's hyperparameters were last chosen.

    `ended` is the current number of ended points. The hyperparameters are chosen again each time this number
    has grown enough.
    """
    found, grown = DRAWN, math.ceil(DRAWN * GROWTH)
    while grown < RENEWAL and found + grown <= ended:
        found += grown
        grown = min(math.ceil(found * GROWTH), RENEWAL)
    return found if grown < RENEWAL else found + (ended - found) // RENEWAL * RENEWAL


def normal_scores(goods: Sequence[Goodness]) -> Numbers:
    """Replace values by normal quantiles of their ranks.

    So an outlier does not distort the model. Equal values get the same quantile, that of their mean rank.
    """
    counts = Counter(goods)
    order = sorted(counts)
    sizes = np.array([counts[each] for each in order])
    quantiles = dict(zip(order, ndtri((sizes.cumsum() - sizes / 2) / len(goods)), strict=True))
    return np.array([quantiles[each] for each in goods])
