"""Differences at few seeds: the pooled variance by least squares, and undefined cases."""

from itertools import combinations

import numpy as np
import pytest
import scipy

from activemem.reporting.statistics.estimates import holm_adjusted
from activemem.reporting.statistics.pooled_differences import differences_between, pooled_variance


def differences_from(base, others):
    return differences_between([base, *others], [(number, 0) for number in range(1, len(others) + 1)])


def values(rows):
    return [dict(enumerate(row)) for row in rows]


@pytest.fixture
def drawn():
    rng = np.random.default_rng(3)
    return rng.normal(0, 5, 4) + rng.normal(0, 1, (5, 4)) + np.arange(5)[:, None]


def residual_variance(table):
    """Return the residual mean square of cells and units, by least squares."""
    cells, units = (index.ravel() for index in np.indices(table.shape))
    design = np.concatenate([np.eye(len(table))[cells], np.eye(table.shape[1])[units]], axis=1)
    fitted = design @ np.linalg.lstsq(design, table.ravel(), rcond=None)[0]
    freedom = (len(table) - 1) * (table.shape[1] - 1)
    return ((table.ravel() - fitted) ** 2).sum() / freedom, freedom


def test_one_comparison_is_a_paired_t_test(drawn):
    base, other = values(drawn[:2])
    (found,) = differences_from(base, [other])
    expected = scipy.stats.ttest_rel(drawn[1], drawn[0])
    low, high = expected.confidence_interval(0.95)
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.mean - found.half_width, found.mean + found.half_width) == pytest.approx((low, high))


def test_the_variance_of_several_cells_is_pooled_or_the_largest(drawn):
    base, *others = values(drawn)
    found = differences_from(base, others)
    residual, freedom = residual_variance(drawn)
    own = max(np.var(row - drawn[0], ddof=1) for row in drawn[1:])
    assert own > 2 * residual
    assert {each.degrees for each in found} == {freedom}
    assert [each.error for each in found] == pytest.approx([(own / 4) ** 0.5] * len(found))
    drawn[1:] = drawn[1:].mean(1, keepdims=True) + drawn[:1] + (drawn[1:] - drawn[:1]) / 1000
    drawn[0, 0] += 0.001
    drawn[1] = np.roll(drawn[1], 1)
    assert differences_from(*_split(drawn))[0].error == pytest.approx(np.std(drawn[1] - drawn[0], ddof=1) / 2)


def _split(table):
    base, *others = values(table)
    return base, others


def test_pairs_of_all_cells_have_the_degrees_that_cells_and_units_leave_over(drawn):
    found = differences_between(values(drawn), list(combinations(range(5), 2)))
    assert len(found) == 10
    assert found[0].degrees == residual_variance(drawn)[1]
    unbalanced = values(drawn)
    del unbalanced[2][1], unbalanced[4][3]
    assert differences_between(unbalanced, list(combinations(range(5), 2)))[0].degrees == found[0].degrees - 2


def test_the_pooled_variance_is_the_mean_over_all_pairs_of_cells_whatever_units_they_have():
    rng = np.random.default_rng(1)
    shared = rng.normal(1e5, 1e3, 6)
    kinds = [range(6), range(3), range(2, 6), [1, 4]]
    cells = [
        {unit: shared[unit] + rng.normal(0, 1) for unit in kinds[number % len(kinds)]} for number in range(40)
    ]
    squares, freedom = 0.0, 0
    for one, other in combinations(cells, 2):
        apart = [one[unit] - other[unit] for unit in one.keys() & other.keys()]
        if len(apart) > 1:
            squares, freedom = squares + np.var(apart) * len(apart), freedom + len(apart) - 1
    assert pooled_variance(cells).variance == pytest.approx(squares / freedom)
    many = [dict(enumerate(row)) for row in rng.normal(0, 1, (10_000, 3))]  # fifty million pairs
    assert pooled_variance(many).variance == pytest.approx(2, abs=0.1)


def test_values_that_differ_only_by_rounding_do_not_vary():
    base = {0: 0.1, 1: 0.2, 2: 100.7}
    same = {unit: value + 1.1 for unit, value in base.items()}
    assert len({same[unit] - base[unit] for unit in base}) > 1
    found = differences_from(base, [same, base])
    assert [(each.half_width, each.p) for each in found] == [(None, None), (None, None)]


def test_differences_without_a_common_unit_or_variation_are_unknown():
    base, same, other = {0: 1.0, 1: 2.0}, {0: 2.0, 1: 3.0}, {7: 1.0}
    found = differences_from(base, [same, other])
    assert found[1] is None
    assert (found[0].mean, found[0].half_width, found[0].p) == (1.0, None, None)
    assert [each and each.p for each in found] == [None, None]


def test_with_many_seeds_a_permutation_test_decides():
    rng = np.random.default_rng(0)
    base = dict(enumerate(rng.normal(0, 1, 10)))
    found = differences_from(base, [{unit: value + 1 for unit, value in base.items()}, base])
    assert [each.p for each in found] == [2 / 2**10, 1.0]
    assert all(each.is_permuted for each in found)


def test_three_seeds_can_be_enough():
    base = {0: 1.0, 1: 1.1, 2: 0.9}
    others = [
        {unit: value + shift + 0.01 * unit for unit, value in base.items()} for shift in (0.0, 1.0, -0.01)
    ]
    adjusted = holm_adjusted([each.p for each in differences_from(base, others)])
    assert [p < 0.05 for p in adjusted] == [False, True, False]
