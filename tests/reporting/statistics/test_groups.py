"""Tests of groups that are not paired, beside SciPy's."""

import math

import pytest
from scipy import stats

from activemem.reporting.statistics.groups import (
    Group,
    differences_of_groups,
    larger_error,
    own_error,
    pool_groups,
    rank_sum_p,
)
from activemem.reporting.statistics.pooled_differences import Pool

CALM, OTHER, WILD = (1.0, 1.1, 0.9, 1.05), (1.3, 1.2, 1.35), (2.0, 5.0, 3.0, 9.0, 1.5)


def test_own_error_is_that_of_welch() -> None:
    groups = [Group(weight=1.0, values=CALM), Group(weight=-1.0, values=OTHER)]
    found, expected = own_error(groups), stats.ttest_ind(CALM, OTHER, equal_var=False)
    assert found is not None
    assert found.degrees == pytest.approx(expected.df)
    shift = sum(CALM) / 4 - sum(OTHER) / 3
    assert shift / found.sd == pytest.approx(expected.statistic)


def test_two_groups_alone_are_pooled_as_in_a_student_t_test() -> None:
    (found,) = differences_of_groups([CALM, OTHER], [(0, 1)])
    expected = stats.ttest_ind(CALM, OTHER)
    interval = expected.confidence_interval()
    assert (found.p, found.degrees) == (pytest.approx(expected.pvalue), pytest.approx(expected.df))
    assert found.half_width == pytest.approx((interval.high - interval.low) / 2)


def test_a_group_that_varies_more_than_the_pool_has_its_own_variance_and_degrees() -> None:
    found = differences_of_groups([CALM, OTHER, WILD], [(2, 0)])[0]
    expected = stats.ttest_ind(WILD, CALM, equal_var=False)
    assert (found.p, found.degrees) == (pytest.approx(expected.pvalue), pytest.approx(expected.df))


def test_one_calm_comparison_keeps_the_larger_pooled_variance() -> None:
    groups = [CALM, OTHER, WILD]
    pool = pool_groups(groups)
    assert pool is not None
    assert pool.degrees == 3 + 2 + 4
    (found,) = differences_of_groups(groups, [(0, 1)])
    assert found.error == pytest.approx(pool.sd * math.sqrt(1 / 4 + 1 / 3))


def test_pools_of_two_metrics_add_up_with_the_degrees_of_satterthwaite() -> None:
    pools = Pool(sd=3.0, degrees=6), Pool(sd=4.0, degrees=12)
    found = larger_error([Group(weight=1.0, values=CALM, pool=each) for each in pools])
    assert found is not None
    assert found.sd == pytest.approx(2.5)
    assert found.degrees == pytest.approx(2.5**4 / (1.5**4 / 6 + 2.0**4 / 12))


def test_equal_values_are_no_more_precise_than_their_rounding() -> None:
    equal = Group(weight=1.0, values=(1.0, 1.0), rounding=0.1)
    found = own_error([equal, Group(weight=-1.0, values=(2.0, 2.0), rounding=0.1)])
    assert found is not None
    assert found.sd == pytest.approx(0.1)


@pytest.mark.parametrize("values", [CALM, (*CALM[:3], math.inf)])
def test_rank_sums_are_exact_as_those_of_mann_and_whitney(values: tuple[float, ...]) -> None:
    expected = stats.mannwhitneyu(values, WILD, method="exact").pvalue
    assert rank_sum_p(values, WILD)[0] == pytest.approx(expected)


def test_ties_keep_rank_sums_exact() -> None:

    infinite = (math.inf, math.inf, 1.0)
    p, side = rank_sum_p(infinite, (2.0, 3.0, 4.0))
    by_hand = stats.permutation_test(
        (stats.rankdata([math.inf, math.inf, 1, 2, 3, 4])[:3], stats.rankdata([9, 9, 1, 2, 3, 4])[3:]),
        lambda one, other: one.mean() - other.mean(),
        n_resamples=math.inf,
    ).pvalue
    assert p == pytest.approx(float(by_hand))
    assert side == 1


def test_a_single_run_has_no_error() -> None:
    (found,) = differences_of_groups([CALM, (1.0,)], [(0, 1)])
    assert (found.p, found.half_width, found.n) == (None, None, 1)
