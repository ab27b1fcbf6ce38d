"""Bayesian optimisation with a Gaussian process over trees of recipes.

As in NAS-BOWL (Ru et al. 2021), points are similar if the Weisfeiler-Lehman labels of their trees are, and
candidates are mutations of the best points. Most candidates are kept until the hyperparameters of the process
are chosen again. Values are replaced by their ranks, so that an outlier does not distort the model. A
proposal depends only on Optuna's points, in the order in which they ended. So a killed search with one worker
continues as if it had not been killed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice, product
from random import Random
from typing import Any

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial
from scipy.linalg import solve_triangular
from scipy.special import ndtr, ndtri

from .....grammar.nodes import ChoiceDimension, Dimension
from .....studies.schema.settings import Level
from .....studies.study import Study
from .evolution import PointChanges, cross
from .search_observations import (
    PLACES,
    EndedPoint,
    PerStudyCache,
    PointKey,
    RecipeFeatures,
    SearchObservations,
    best_and_last,
    distribution,
    draw,
    point_key,
)

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSettings:
    """Hyperparameters of the kernel: length scales and noise.

    There is a length scale for each group of features. The noise is its variance divided by that of the
    signal.
    """

    lengths: tuple[float, ...]
    noise: float

    def scaled(self, points: Sequence[Numbers]) -> Numbers:
        """Divide each group of features by its length scale. The result has a row for each point."""
        pairs = zip(points, self.lengths, strict=True)
        return np.hstack([each / length for each, length in pairs])


def kernel(distances: Sequence[Numbers], settings: KernelSettings) -> Numbers:
    """Return the correlation of points, given their squared distances.

    There are distances for each group of features.
    """
    scaled = [each / length**2 for each, length in zip(distances, settings.lengths, strict=True)]
    return np.exp(-0.5 * reduce(np.add, scaled))


def squared_distances(first: Numbers, second: Numbers) -> Numbers:
    """Return the squared distances between the rows of two matrices."""
    lengths = (first**2).sum(1)[:, None] + (second**2).sum(1)[None]
    # rounding may make a distance of 0 slightly negative
    return np.maximum(lengths - 2 * first @ second.T, 0.0)


class GaussianProcess:
    """A Gaussian process with mean zero, fitted to noisy values at points.

    The variance of the signal is estimated from the values. `points` has an array for each group of
    features, with a row for each point.
    """

    def __init__(self, points: Sequence[Numbers], values: Numbers, settings: KernelSettings) -> None:
        self._settings, self._points, self._values = settings, settings.scaled(points), values
        distances = [squared_distances(each, each) for each in points]
        self._root = _cholesky(distances, settings)
        self._whitened = solve_triangular(self._root, values, lower=True, check_finite=False)

    def predict(self, points: Sequence[Numbers]) -> tuple[Numbers, Numbers]:
        """Return the means and the standard deviations of the values at points, without noise."""
        across = np.exp(-0.5 * squared_distances(self._points, self._settings.scaled(points)))
        inner = solve_triangular(self._root, across, lower=True, check_finite=False)
        signal = (self._whitened @ self._whitened) / len(self._whitened)
        # rounding may make a variance near 0 slightly negative
        return inner.T @ self._whitened, np.sqrt(signal * np.maximum(1 - (inner**2).sum(0), 1e-12))

    def smooth(self) -> Numbers:
        """Return the posterior mean at the observed points."""
        solved = solve_triangular(self._root, self._whitened, lower=True, trans=1, check_finite=False)
        return self._values - self._settings.noise * solved


def likeliest(points: Sequence[Numbers], values: Numbers, grid: Iterable[KernelSettings]) -> KernelSettings:
    """Return the kernel settings in `grid` with the highest likelihood.

    It is the likelihood of these values.
    """
    distances = [squared_distances(each, each) for each in points]
    return max(grid, key=lambda settings: log_likelihood(distances, values, settings))


def log_likelihood(distances: Sequence[Numbers], values: Numbers, settings: KernelSettings) -> float:
    """Return the log marginal likelihood of values under kernel settings, up to a constant.

    The signal's variance is the one that makes the values most likely.
    """
    root = _cholesky(distances, settings)
    whitened = solve_triangular(root, values, lower=True, check_finite=False)
    # values that are all 0 would have no logarithm
    signal = max((whitened @ whitened) / len(values), 1e-300)
    return float(-np.log(np.diag(root)).sum() - len(values) / 2 * math.log(signal))


def settings_grid(lengths: Sequence[Sequence[float]], noises: Sequence[float]) -> list[KernelSettings]:
    """Return hyperparameters for all combinations of length scales and noise levels."""
    return [KernelSettings(lengths=tuple(each), noise=noise) for *each, noise in product(*lengths, noises)]


def _cholesky(distances: Sequence[Numbers], settings: KernelSettings) -> Numbers:
    # the noise also keeps the matrix positive definite if two points are equal
    covariance = kernel(distances, settings) + settings.noise * np.eye(len(distances[0]))
    return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)


Values = dict[str, Level]
Goodness = tuple[bool, int, float]

DRAWN = 10
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


class TreeSampler(optuna.samplers.BaseSampler):
    """Sampler that proposes the point with the highest expected improvement.

    It is for one search with one objective.
    """

    def __init__(self, study: Study, *, seed: int) -> None:
        self._space = {name: distribution(each) for name, each in study.dimensions.items()}
        self._choose, self._seed = study.choose, seed
        self._changes = PointChanges(self._space)
        choices = (name for name, each in study.dimensions.items() if isinstance(each, ChoiceDimension))
        self._choices = tuple(choices)  # dimensions that decide which other dimensions are active
        features = RecipeFeatures(study)
        self._beliefs = PerStudyCache(lambda shown: Beliefs(features, SearchObservations(shown), self._pool))

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        del study, trial
        return self._space

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        del search_space
        beliefs = self._beliefs.of(study)
        observed = beliefs.observed
        observed.learn(trial.number)
        rng = Random(f"{self._seed} {observed.begun} {observed.tries}")
        drawn = self._completed({}, rng)
        return drawn if len(observed.ended) < DRAWN else self._best_candidate(beliefs, rng) or drawn

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401 -- as Optuna has it
        del study
        return draw(param_distribution, Random(f"{self._seed} {trial.number} {param_name}"))

    def _best_candidate(self, beliefs: Beliefs, rng: Random) -> Values | None:
        observed = beliefs.observed
        beliefs.update()
        promising = beliefs.promising()
        if promising and not observed.tries and observed.begun % REFINED:
            return promising[0]
        best = beliefs.best()
        points = [self._child(each, rng) for each in (best, promising or best) for _ in range(CHILDREN)]
        points += [] if observed.tries else promising[:1]  # otherwise rejected points would be proposed again
        return beliefs.best_of(points)

    def _pool(self, best: Sequence[Values], ended: int) -> list[Values]:
        rng = Random(f"{self._seed} pool {ended}")
        drawn = [self._completed({}, rng) for _ in range(POOL_DRAWN)]
        return [*drawn, *(self._child(best, rng) for _ in range(POOL_CHANGED))]

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
        """Change these values into a valid search point.

        Dimensions that are inactive for the values are dropped, and missing active ones are drawn.
        """

        def value(name: str, dimension: Dimension) -> Level:
            del dimension
            return values[name] if name in values else draw(self._space[name], rng)

        return self._choose(value)


class Beliefs:
    """Predictions of the Gaussian process for search points.

    The value of a point that is still in training is assumed to be the average.
    """

    def __init__(
        self,
        features: RecipeFeatures,
        observed: SearchObservations,
        make_pool: Callable[[Sequence[Values], int], list[Values]],
    ) -> None:
        self.observed, self._features, self._make_pool = observed, features, make_pool
        self._renewed, self._read = 0, 0
        self._members: list[EndedPoint] = []
        self._scores = np.empty(0)
        self._settings: KernelSettings
        self._process: GaussianProcess
        self._pool: list[Values]
        self._highest = 0.0

    def best(self) -> list[Values]:
        """Return the best observed search points, the best one first."""
        order = np.argsort(-self._scores, kind="stable")
        return [self._members[place].values for place in order[:PARENTS].tolist()]

    def update(self) -> None:
        """Fit the Gaussian process again to all points so far.

        These are the ended points, and the points in training.
        """
        observed, renewed = self.observed, last_renewal(len(self.observed.ended))
        if renewed != self._renewed:
            self._read = self._renewed = renewed
            self._members = []
            self._take(best_and_last(observed.ended[:renewed], best=KEPT, last=WINDOW - KEPT))
            self._settings = self._likeliest_settings()
            self._pool = self._make_pool(self.best(), renewed)
        self._take(observed.ended[self._read :])
        self._read = len(observed.ended)
        members = [each.values for each in self._members]
        self._process = GaussianProcess(self._groups(members), self._scores, self._settings)
        self._highest = float(self._process.smooth().max())
        if observed.training:
            # 0 is the mean of all scores
            values = np.concatenate([self._scores, np.zeros(len(observed.training))])
            points = self._groups([*members, *observed.training])
            self._process = GaussianProcess(points, values, self._settings)

    def _take(self, points: Sequence[EndedPoint]) -> None:
        self._members += points
        if points:
            self._scores = normal_scores([each.goodness for each in self._members])

    def promising(self) -> list[Values]:
        """Return the best points of the candidate pool, the best one first.

        They are compared by their expected improvement.
        """
        return list(islice(self._ranked(self._pool), PARENTS))

    def best_of(self, candidates: Sequence[Values]) -> Values | None:
        """Return the best candidate; None if all have been proposed.

        The best one has the highest expected improvement.
        """
        return next(self._ranked(candidates), None)

    def _ranked(self, candidates: Sequence[Values]) -> Iterator[Values]:
        """Yield candidates in the order of falling expected improvement.

        Points that were proposed before are left out, and each point is yielded once.
        """
        means, deviations = self._process.predict(self._groups(candidates))
        deviations = np.maximum(deviations, _LEAST_DEVIATION)
        distances = (means - self._highest) / deviations
        densities = np.exp(-0.5 * distances**2) / _ROOT
        expected = deviations * (distances * ndtr(distances) + densities)
        met = set[PointKey]()
        for place in np.argsort(-expected, kind="stable").tolist():
            key = point_key(values := candidates[place])
            if key not in self.observed and key not in met:
                met.add(key)
                yield values

    def _likeliest_settings(self) -> KernelSettings:
        groups = self._groups([each.values for each in self._members])
        middles = [math.sqrt(float(np.median(squared_distances(each, each))) or 1.0) for each in groups]
        grid = settings_grid([[factor * middle for factor in LENGTHS] for middle in middles], NOISES)
        return likeliest(groups, self._scores, grid)

    def _groups(self, points: Sequence[Mapping[str, Any]]) -> list[Numbers]:
        rows = self._features.of(points)
        return [rows[:, :PLACES], rows[:, PLACES:]]


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
