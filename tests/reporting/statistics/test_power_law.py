"""A power law: the straight line through logarithms, as SciPy has it."""

import math

import numpy as np
import pytest
from scipy.stats import linregress, t

from activemem.reporting.statistics.power_law import fit_power_law

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


def test_two_points_and_points_on_the_line_have_no_interval():
    two = fit_power_law([(1.0, 8.0), (4.0, 4.0)])
    assert (two.exponent, two.half_width) == (pytest.approx(-0.5), None)
    assert two.at(2.0)[1:] == (None, None)
    exact = fit_power_law([(x, 3 * x**-0.25) for x in (1.0, 10.0, 100.0, 1e4)])
    assert exact.exponent == pytest.approx(-0.25)
    assert exact.half_width is None
    assert fit_power_law([(2.0, 1.0), (2.0, 3.0)]) is None
