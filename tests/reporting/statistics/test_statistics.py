"""Statistical functions against hand-computed cases and SciPy."""

import math

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from activemem.reporting.statistics.estimates import (
    Estimate,
    StatisticsError,
    estimate,
    hochberg_adjusted,
    hochberg_threshold,
    hodges_lehmann,
    holm_adjusted,
    mean,
    paired_p,
    pairs_needed,
    sample_sd,
    signed_rank_interval,
    smallest_p,
    t_test_p,
)

SEVEN = (3.0, -1.5, 8.25, 4.0, 2.5, 7.0, 5.5)


def against_zero(*differences, **how):
    """Return the p value of pairs with these differences."""
    return paired_p(differences, **how)


def test_a_mean_with_its_deviation_error_and_interval_as_worked_out_by_hand():
    error = 2 / math.sqrt(3)
    reach = 4.302652729911275 * error  # the t table at 2 degrees of freedom
    assert estimate([7, 9, 11]) == Estimate(value=9.0, low=7.0, high=11.0, spread=2.0, n=3)
    assert estimate([7, 9, 11], spread="se") == Estimate(
        value=9.0, low=9 - error, high=9 + error, spread=error, n=3
    )
    found = estimate([7, 9, 11], spread="ci")
    assert (found.value, found.n) == (9.0, 3)
    assert (found.low, found.high, found.spread) == pytest.approx((9 - reach, 9 + reach, reach), rel=1e-9)


def test_the_interval_of_a_mean_is_scipys():
    found = estimate(SEVEN, spread="ci")
    theirs = scipy.stats.ttest_1samp(SEVEN, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), rel=1e-9)
    assert sample_sd(SEVEN) == pytest.approx(scipy.stats.tstd(SEVEN), rel=1e-9)


def test_equal_values_have_no_interval_whatever_their_mean_is_rounded_to():
    found = estimate([0.961] * 5, spread="ci")
    assert (found.spread, found.low, found.high) == (None, None, None)


@pytest.mark.parametrize("spread", ["sd", "se", "ci"])
def test_one_value_has_no_spread(spread):
    assert estimate([5.0], spread=spread) == Estimate(value=5.0, low=None, high=None, spread=None, n=1)


@given(
    spread=st.sampled_from(["sd", "se", "ci"]),
    values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8),
    turn=st.integers(0, 7),
)
def test_the_order_of_the_values_moves_no_bit(spread, values, turn):
    turned = values[turn:] + values[:turn]
    assert estimate(values, spread=spread) == estimate(turned, spread=spread)


def test_a_permutation_test_as_worked_out_by_hand():
    # of the eight sums of ±1, ±2 and ±0.5, four are at least 2.5 in size
    assert against_zero(1.0, 2.0, -0.5) == 4 / 8


@pytest.mark.parametrize("count", [2, 5, 7])
def test_exact_permutations_are_scipys(count):
    theirs = scipy.stats.permutation_test((SEVEN[:count],), np.mean, permutation_type="samples")
    assert against_zero(*SEVEN[:count]) == pytest.approx(min(1.0, theirs.pvalue))


def test_wilcoxons_test_is_scipys():
    ours = against_zero(*SEVEN, test="wilcoxon")
    assert ours == pytest.approx(scipy.stats.wilcoxon(SEVEN, method="exact").pvalue)


def test_wilcoxons_test_shares_ranks_and_leaves_zeros_out():
    # ranks 1.5, 1.5, 3 with signs +, -, +: sums of size 3 or more are 6, 3, -3 and -6, 3 twice and -3 twice
    assert against_zero(0.0, 1.0, -1.0, 2.0, test="wilcoxon") == 6 / 8


def test_many_pairs_are_drawn_from_and_come_near_the_exact_p():
    values = np.random.default_rng(5).normal(0.3, 1.0, size=40)
    assert against_zero(*values) == pytest.approx(scipy.stats.ttest_1samp(values, 0).pvalue, rel=0.15)
    ranked = against_zero(*values, test="wilcoxon")
    assert ranked == pytest.approx(scipy.stats.wilcoxon(values, method="exact").pvalue, rel=0.15)
    assert ranked == against_zero(*values, test="wilcoxon")


@pytest.mark.parametrize("test", ["permutation", "wilcoxon"])
@pytest.mark.parametrize(
    ("count", "p"), [(1, 1.0), (2, 0.5), (3, 0.25), (6, 1 / 32), (15, 2 / 2**15), (20, 2 / 2**20)]
)
def test_however_large_the_effect_few_seeds_cannot_make_it_sure(test, count, p):
    differences = [1e9 + each for each in range(count)]
    assert against_zero(*differences, test=test) == smallest_p(count) == p


@pytest.mark.parametrize("test", ["permutation", "wilcoxon"])
@pytest.mark.parametrize("count", [21, 25, 40])
def test_with_random_sign_patterns_too_p_never_becomes_zero(test, count):
    # the observed pattern counts as one of the 20,000
    assert against_zero(*(1e9 + each for each in range(count)), test=test) == 1 / 20_000


@pytest.mark.parametrize("test", ["permutation", "wilcoxon"])
def test_equal_values_are_no_effect(test):
    assert against_zero(0.0, 0.0, 0.0, test=test) == 1.0


@pytest.mark.parametrize(
    ("size", "fewest", "needed"),
    [
        (0.5, 2, 34),  # as tables of the power of paired t tests have it
        (0.8, 2, 15),
        (0.2, 2, 199),
        (5.0, 6, 6),  # fewer could never reach 0.05
        (0.01, 2, None),  # more than anyone runs
    ],
)
def test_it_is_said_how_many_pairs_would_do(size, fewest, needed):
    assert pairs_needed(size, 0.95, min_pairs=fewest) == needed


def test_the_power_for_that_number_of_pairs_is_scipys():
    needed = pairs_needed(0.7, 0.95)

    def power(n):
        return scipy.stats.nct.sf(scipy.stats.t.isf(0.025, n - 1), n - 1, 0.7 * math.sqrt(n))

    assert needed is not None
    assert power(needed) >= 0.8 > power(needed - 1)


def test_holms_correction_as_worked_out_by_hand():
    # sorted .005, .01, .03, .04 times 4, 3, 2, 1 is .02, .03, .06, .04; the last must not be below the third
    assert holm_adjusted([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm_adjusted([0.5, 0.6]) == (1.0, 1.0)
    assert holm_adjusted([]) == ()


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_lowers_nothing_and_keeps_the_order(p_values):
    adjusted = holm_adjusted(p_values)
    assert all(before <= after <= 1 for before, after in zip(p_values, adjusted, strict=True))
    assert [after for _, after in sorted(zip(p_values, adjusted, strict=True))] == sorted(adjusted)


def test_sums_are_exact():
    assert mean((1e16, 1.0, -1e16, 1.0)) == 0.5


@pytest.mark.parametrize(
    "values",
    [
        (),
        (1.0, math.nan, -math.inf),
    ],
    ids=str,
)
def test_values_that_are_not_numbers_are_rejected(values, golden):
    with golden.raises(StatisticsError):
        estimate(values)


def test_hochberg_takes_all_where_the_largest_is_small_enough_and_else_looks_closer():
    assert hochberg_threshold([0.04, 0.05, 0.01], 0.05) == 0.05
    assert hochberg_threshold([0.04, 0.06, 0.02], 0.05) == 0.05 / 3
    assert hochberg_threshold([0.02, 0.06, 0.02], 0.05) == 0.025
    assert hochberg_threshold([0.5, 0.001], 0.05) == 0.025
    assert hochberg_threshold([], 0.05) == 0.05
    assert hochberg_adjusted([0.01, 0.04, 0.03]) == pytest.approx((0.03, 0.04, 0.04))


@given(st.lists(st.floats(0, 1), max_size=8), st.floats(0.001, 0.5))
def test_hochbergs_threshold_and_his_adjusted_p_values_say_the_same(p_values, alpha):
    threshold = hochberg_threshold(p_values, alpha)
    for p, adjusted in zip(p_values, hochberg_adjusted(p_values), strict=True):
        if adjusted != pytest.approx(alpha):  # else rounding decides
            assert (p <= threshold) == (adjusted <= alpha)
        assert p <= adjusted <= min(1.0, len(p_values) * p) + 1e-15


def test_p_of_a_t_and_the_pairs_that_it_takes_are_scipys():
    assert t_test_p(-6.0, 2) == pytest.approx(2 * scipy.stats.t.sf(6.0, 2))
    assert t_test_p(0.0, 2) == 1.0
    found = pairs_needed(1.0, 0.95)
    assert found == 10  # as tables of power have it
    assert pairs_needed(1e-6, 0.95) is None
    assert pairs_needed(1e3, 0.95, min_pairs=6) == 6


def test_values_that_are_all_the_same_have_no_interval():
    assert estimate([7.0] * 3, spread="sd").spread == 0.0
    for spread in ("se", "ci"):
        assert estimate([7.0] * 8, spread=spread).spread is None


def test_the_interval_of_ranks_has_the_values_that_the_test_does_not_refuse():
    found = [0.3, -0.2, 1.1, 0.9, 0.7, 1.6, 0.45, 2.3]
    low, high = signed_rank_interval(found, 0.95)
    for value in (-0.5 + 0.013 * step for step in range(250)):
        p = paired_p((each - value for each in found), test="wilcoxon")
        assert (p > 0.05) == (low < value < high)
    assert low < hodges_lehmann(found) < high
    assert signed_rank_interval(found[:5], 0.95) is None  # the smallest p of five is 2 / 32


def test_infinite_differences_leave_the_end_of_the_interval_on_their_side_open():
    assert hodges_lehmann([1.0, 2.0, math.inf]) == math.inf  # of 1, 1.5, 2 and three times ∞
    assert (
        hodges_lehmann([1.0, 2.0, 4.0, 8.0, math.inf]) == 5.0
    )  # 1, 1.5, 2, 2.5, 3, 4, 4.5, 5, 6, 8, five times ∞
    assert hodges_lehmann([math.inf, -math.inf]) == 0.0
    assert signed_rank_interval([1.0, 2.0, 3.0, 4.0, 5.0, math.inf], 0.95) == (1.0, math.inf)
    assert signed_rank_interval([math.inf] * 6, 0.95) is None
