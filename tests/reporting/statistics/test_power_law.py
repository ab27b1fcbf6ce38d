"""Power laws: regression on logarithms, compared with SciPy."""

import math

import numpy as np
import pytest
from scipy.stats import linregress, t

from activemem.reporting.statistics.power_law import exponent_difference, fit_power_law

POINTS = [(1e3, 4.1), (4e3, 3.0), (2e4, 2.3), (1e5, 1.5), (3e5, 1.3)]


def test_exponent_interval_and_band_are_those_of_the_regression():
    law = fit_power_law(POINTS)
    xs, ys = np.log(np.array(POINTS)).T
    found = linregress(xs, ys)
    assert law.exponent == pytest.approx(found.slope)
    assert law.coefficient == pytest.approx(math.exp(found.intercept))
    assert law.half_width == pytest.approx(t.ppf(0.975, 3) * found.stderr)
    # where x is 1 the band is the interval of the intercept
    value, low, high = law.at(1.0)
    assert value == pytest.approx(law.coefficient)
    assert math.log(high / low) / 2 == pytest.approx(t.ppf(0.975, 3) * found.intercept_stderr)


def test_the_difference_of_two_exponents_is_that_of_welchs_test():
    other = [
        (x, y * x**-0.05 * error) for (x, y), error in zip(POINTS[:4], (1, 1.05, 0.97, 1.01), strict=True)
    ]
    law, steeper = fit_power_law(POINTS), fit_power_law(other)
    (found, low, high), p = exponent_difference(steeper, law)
    fits = [linregress(*np.log(np.array(each)).T) for each in (POINTS, other)]
    variances = [each.stderr**2 for each in fits]
    degrees = sum(variances) ** 2 / (variances[0] ** 2 / 3 + variances[1] ** 2 / 2)
    error = math.sqrt(sum(variances))
    assert found == pytest.approx(fits[1].slope - fits[0].slope)
    assert (high - low) / 2 == pytest.approx(t.ppf(0.975, degrees) * error)
    assert p == pytest.approx(2 * t.sf(abs(found) / error, degrees))
    assert exponent_difference(law, fit_power_law(POINTS[:2])) is None


def test_two_points_and_points_on_the_line_have_no_interval():
    two = fit_power_law([(1.0, 8.0), (4.0, 4.0)])
    assert (two.exponent, two.half_width) == (pytest.approx(-0.5), None)
    assert two.at(2.0)[1:] == (None, None)
    exact = fit_power_law([(x, 3 * x**-0.25) for x in (1.0, 10.0, 100.0, 1e4)])
    assert exact.exponent == pytest.approx(-0.25)
    assert exact.half_width is None
    assert fit_power_law([(2.0, 1.0), (2.0, 3.0)]) is None


def test_points_near_the_line_by_chance_keep_the_error_of_their_means():
    line = [(x, 3 * x**-0.25) for x in (1.0, 10.0, 100.0)]
    law = fit_power_law(line, least_error=0.01)
    spread = 2 * math.log(10) ** 2
    assert law.half_width == pytest.approx(t.ppf(0.975, 1) * 0.01 / math.sqrt(spread))
    assert fit_power_law(POINTS, least_error=1e-6).half_width == fit_power_law(POINTS).half_width
    assert fit_power_law(line[:2], least_error=0.01).half_width is None
    offset = fit_power_law(list(zip(SIZES, LAW, strict=True)), least_error=0.01, offset=True)
    low, high = offset.exponent_interval
    assert low < -0.41
    assert high > -0.39


SIZES = np.geomspace(1e4, 1e6, 7)
LAW = 1.2 + 300 * SIZES**-0.4


def test_a_law_with_an_offset_has_the_numbers_that_made_it():
    law = fit_power_law(list(zip(SIZES, LAW, strict=True)), offset=True)
    assert (law.exponent, law.offset, law.coefficient) == pytest.approx((-0.4, 1.2, 300), rel=1e-3)
    assert law.at(4e6)[0] == pytest.approx(1.2 + 300 * 4e6**-0.4, rel=1e-4)
    plain = fit_power_law(list(zip(SIZES, 7 * SIZES**-0.25, strict=True)), offset=True)
    assert (plain.exponent, plain.offset) == (pytest.approx(-0.25, abs=0.01), pytest.approx(0, abs=0.01))


def test_three_cells_have_a_law_without_intervals_and_two_have_none():
    three = fit_power_law(list(zip(SIZES[:3], LAW[:3], strict=True)), offset=True)
    assert three.exponent_interval is None
    assert three.next_cell(1e6)[1:] == (None, None)
    assert fit_power_law(list(zip(SIZES[:2], LAW[:2], strict=True)), offset=True) is None


@pytest.mark.slow
def test_intervals_of_the_laws_hold_as_often_as_they_say():
    draws, generator, held = 200, np.random.default_rng(0), np.zeros(4)
    new_size = 4e6
    for _ in range(draws):
        noise = np.exp(generator.normal(0, 0.01, len(SIZES) + 1))
        law = fit_power_law(list(zip(SIZES, LAW * noise[1:], strict=True)), offset=True)
        plain = fit_power_law(list(zip(SIZES, SIZES**-0.4 * noise[1:], strict=True)))
        new, new_plain = (1.2 + 300 * new_size**-0.4) * noise[0], new_size**-0.4 * noise[0]
        intervals = (law.exponent_interval, law.offset_interval, law.next_cell(new_size)[1:])
        intervals += (plain.next_cell(new_size)[1:],)
        true = (-0.4, 1.2, new, new_plain)
        held += [low <= value <= high for (low, high), value in zip(intervals, true, strict=True)]
    assert (held / draws >= 0.90).all()
    assert (held / draws <= 0.995).all()


def test_a_law_too_steep_for_its_coefficient_still_predicts():
    law = fit_power_law([(1e10, 2.0), (2e10, 1.0), (4e10, 1.0), (8e10, 1.0)], 0.01, offset=True)
    assert law.coefficient == math.inf
    assert law.at(2e10).value == pytest.approx(1, abs=1e-6)
