"""Differences at few seeds: the pooled variance by least squares, and undefined cases."""

from itertools import combinations

import numpy as np
import pytest
import scipy

from activemem.reporting.claims.hypothesis_test import paired_test
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


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_each_comparison_has_the_larger_of_its_own_and_the_pooled_variance(seeds):
    rng, kinds = np.random.default_rng(seeds), set()
    for _ in range(20):
        spreads = np.array([1, 1, 1, 4, 8])[:, None]
        table = rng.normal(0, 5, seeds) + rng.normal(0, 1, (5, seeds)) * spreads
        residual, freedom = residual_variance(table)
        base, *others = values(table)
        for row, found in zip(table[1:], differences_from(base, others), strict=True):
            own = np.var(row - table[0], ddof=1)
            pooled_error = (2 * residual / seeds) ** 0.5
            expected = scipy.stats.ttest_rel(row, table[0])
            p, degrees, error = expected.pvalue, expected.df, (own / seeds) ** 0.5
            if own <= 2 * residual:
                t = (row - table[0]).mean() / pooled_error
                p, degrees, error = 2 * scipy.stats.t.sf(abs(t), freedom), freedom, pooled_error
            kinds.add(bool(own > 2 * residual))
            assert (found.p, found.degrees, found.error) == pytest.approx((p, degrees, error))
            # the claim about the same two cells
            claim = paired_test(
                differences=dict(enumerate((row - table[0]).tolist())),
                region=(0.0, np.inf) if found.mean > 0 else (-np.inf, 0.0),
                rounding=0.0,
                test="pooled",
                complete=True,
                pool=pooled_variance([base, *others]),
            )
            assert (claim.p, claim.degrees) == pytest.approx((p, degrees))
    assert kinds == {True, False}


def test_a_comparison_with_one_common_seed_has_no_test():
    base, near, short = {0: 1.0, 1: 2.0, 2: 1.5}, {0: 2.0, 1: 2.5, 2: 2.6}, {0: 5.0}
    found = differences_from(base, [near, short])
    assert found[0].p is not None
    assert (found[1].mean, found[1].p, found[1].half_width) == (4.0, None, None)


def test_pairs_of_all_cells_have_the_degrees_that_cells_and_units_leave_over(drawn):
    found = differences_between(values(drawn), list(combinations(range(5), 2)))
    assert len(found) == 10
    assert max(each.degrees for each in found) == residual_variance(drawn)[1]
    unbalanced = values(drawn)
    del unbalanced[2][1], unbalanced[4][3]
    fewer = differences_between(unbalanced, list(combinations(range(5), 2)))
    assert max(each.degrees for each in fewer) == residual_variance(drawn)[1] - 2


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
    assert pooled_variance(cells).sd == pytest.approx((squares / freedom) ** 0.5)
    many = [dict(enumerate(row)) for row in rng.normal(0, 1, (10_000, 3))]  # fifty million pairs
    assert pooled_variance(many).sd == pytest.approx(2**0.5, abs=0.05)


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


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e-9, 1e9, 1e125, 1e160, 1e300])
def test_a_test_of_values_of_any_size_has_the_same_p(drawn, size):
    plain, scaled = (differences_from(*_split(table)) for table in (drawn, drawn * size))
    assert [each.p for each in scaled] == pytest.approx([each.p for each in plain])
    assert [each.half_width / size for each in scaled] == pytest.approx([each.half_width for each in plain])
    claims = [
        paired_test(
            differences=dict(enumerate((table[1] - table[0]).tolist())),
            region=(0.0, np.inf),
            rounding=0.0,
            test=test,
            complete=True,
            pool=pooled_variance(values(table)),
        )
        for test in ("pooled", "t", "permutation", "wilcoxon")
        for table in (drawn, drawn * size)
    ]
    assert [each.p for each in claims[1::2]] == pytest.approx([each.p for each in claims[::2]])
    assert [each.needed(0.95) for each in claims[1::2]] == [each.needed(0.95) for each in claims[::2]]


def _split(table):
    base, *others = values(table)
    return base, others
