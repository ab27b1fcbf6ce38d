"""A Gaussian process equals the textbook formulas in any order of points."""

import math

import numpy as np
import pytest

from activemem.engine.run.search.samplers.gp_trees import GaussianProcess, likeliest

LENGTHS, NOISE = (1.5, 0.7), 0.05


def drawn(count, seed):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(count, 3)), rng.normal(size=(count, 2))]


def correlation(first, second, lengths=LENGTHS):
    """Return the kernel of two points by its formula."""
    groups = zip(first, second, lengths, strict=True)
    return math.exp(-sum(((a - b) ** 2).sum() / length**2 for a, b, length in groups) / 2)


def correlations(first, second, lengths=LENGTHS):
    pairs = [list(zip(*points, strict=True)) for points in (first, second)]
    return np.array([[correlation(a, b, lengths) for b in pairs[1]] for a in pairs[0]])


def test_predictions_are_those_of_the_formulas():
    count = 150
    points, others, values = drawn(count, 1), drawn(5, 2), np.random.default_rng(3).normal(size=count)
    process = GaussianProcess(points, values, lengths=LENGTHS, noise=NOISE)
    covariance = correlations(points, points)
    inverse = np.linalg.inv(covariance + NOISE * np.eye(count))
    across = correlations(points, others)
    signal = values @ inverse @ values / count
    means, deviations = process.predict(others)
    np.testing.assert_allclose(means, across.T @ inverse @ values, rtol=1e-8)
    variances = signal * (1 - np.diag(across.T @ inverse @ across))
    np.testing.assert_allclose(deviations**2, variances, rtol=1e-8)
    np.testing.assert_allclose(process.smooth(), covariance @ inverse @ values, rtol=1e-8)


def test_the_likelihood_is_that_of_a_normal_distribution_at_the_best_signal():
    points, values = drawn(12, 4), np.random.default_rng(5).normal(size=12)
    covariance = correlations(points, points)
    covariance += NOISE * np.eye(12)

    def density(signal):
        _, logarithm = np.linalg.slogdet(signal * covariance)
        return -0.5 * (values @ np.linalg.solve(signal * covariance, values) + logarithm)

    best = max(density(signal) for signal in np.geomspace(0.1, 10, 2001))
    found = GaussianProcess(points, values, lengths=LENGTHS, noise=NOISE).log_likelihood()
    assert found - best == pytest.approx(6, abs=1e-4)  # half the number of points, which does not count


def test_the_likeliest_kernel_is_the_one_that_values_were_drawn_with():
    rng, points = np.random.default_rng(6), drawn(60, 7)
    covariance = correlations(points, points, (0.5, 4.0)) + 0.01 * np.eye(60)
    values = np.linalg.cholesky(covariance) @ rng.normal(size=60)
    found = likeliest(points, values, [(0.5, 4.0)] * 2, (0.01, 1.0))
    assert (found.lengths, found.noise) == ((0.5, 4.0), 0.01)


def test_a_matrix_that_is_no_covariance_is_reported():
    points = [np.zeros((3, 1))]
    with pytest.raises(np.linalg.LinAlgError, match=r"(?i)not positive definite"):
        GaussianProcess(points, np.zeros(3), lengths=(1.0,), noise=-0.5)
