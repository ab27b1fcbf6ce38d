"""A Gaussian process equals the textbook formulas in any order of points."""

import math

import numpy as np
import pytest

from activemem.engine.run.search.samplers import (
    GaussianProcess,
    KernelSettings,
    kernel,
    likeliest,
    log_likelihood,
    settings_grid,
    squared_distances,
)

SETTINGS = KernelSettings(lengths=(1.5, 0.7), noise=0.05)


def drawn(count, seed):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(count, 3)), rng.normal(size=(count, 2))]


def correlation(first, second):
    """Return the kernel of two points by its formula."""
    groups = zip(first, second, SETTINGS.lengths, strict=True)
    return math.exp(-sum(((a - b) ** 2).sum() / length**2 for a, b, length in groups) / 2)


def rows(points):
    return list(zip(*points, strict=True))


def test_the_kernel_is_the_product_of_one_in_each_group_and_positive_semi_definite():
    points = drawn(30, 0)
    found = kernel([squared_distances(each, each) for each in points], SETTINGS)
    written = [[correlation(a, b) for b in rows(points)] for a in rows(points)]
    np.testing.assert_allclose(found, written, rtol=1e-9, atol=1e-12)
    assert np.linalg.eigvalsh(found).min() > -1e-9


def test_predictions_are_those_of_the_formulas():
    count = 150
    points, others, values = drawn(count, 1), drawn(5, 2), np.random.default_rng(3).normal(size=count)
    process = GaussianProcess(points, values, SETTINGS)
    covariance = np.array([[correlation(a, b) for b in rows(points)] for a in rows(points)])
    inverse = np.linalg.inv(covariance + SETTINGS.noise * np.eye(count))
    across = np.array([[correlation(a, b) for b in rows(others)] for a in rows(points)])
    signal = values @ inverse @ values / count
    means, deviations = process.predict(others)
    np.testing.assert_allclose(means, across.T @ inverse @ values, rtol=1e-8)
    variances = signal * (1 - np.diag(across.T @ inverse @ across))
    np.testing.assert_allclose(deviations**2, variances, rtol=1e-8)
    np.testing.assert_allclose(process.smooth(), covariance @ inverse @ values, rtol=1e-8)


def test_the_likelihood_is_that_of_a_normal_distribution_at_the_best_signal():
    points, values = drawn(12, 4), np.random.default_rng(5).normal(size=12)
    covariance = np.array([[correlation(a, b) for b in rows(points)] for a in rows(points)])
    covariance += SETTINGS.noise * np.eye(12)

    def density(signal):
        _, logarithm = np.linalg.slogdet(signal * covariance)
        return -0.5 * (values @ np.linalg.solve(signal * covariance, values) + logarithm)

    best = max(density(signal) for signal in np.geomspace(0.1, 10, 2001))
    found = log_likelihood([squared_distances(each, each) for each in points], values, SETTINGS)
    assert found - best == pytest.approx(6, abs=1e-4)  # half the number of points, which does not count


def test_the_likeliest_settings_are_near_those_that_values_were_drawn_with():
    rng, points = np.random.default_rng(6), drawn(60, 7)
    true = KernelSettings(lengths=(0.5, 4.0), noise=0.01)
    covariance = kernel([squared_distances(each, each) for each in points], true) + 0.01 * np.eye(60)
    values = np.linalg.cholesky(covariance) @ rng.normal(size=60)
    grid = settings_grid([(0.5, 4.0)] * 2, (0.01, 1.0))
    assert likeliest(points, values, grid) == true


def test_a_matrix_that_is_no_covariance_is_reported():
    points = [np.zeros((3, 1))]
    with pytest.raises(np.linalg.LinAlgError, match=r"(?i)not positive definite"):
        likeliest(points, np.zeros(3), settings_grid([(1.0,)], (-0.5,)))
