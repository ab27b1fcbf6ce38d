"""Shares of variance by a forest, of functions whose shares are known."""

import numpy as np
import pytest

from activemem.reporting.statistics.functional_anova import variance_shares

PLACES = np.random.default_rng(1).random((400, 3))


def shares(values, places=PLACES):
    return variance_shares(places, values, trees=8, generator=np.random.default_rng(2))


def test_a_sum_has_the_shares_of_its_parts():
    assert shares(2 * PLACES[:, 0] + PLACES[:, 1]) == pytest.approx([0.8, 0.2, 0], abs=0.05)


def test_what_two_coordinates_do_together_is_left_over():
    assert shares(PLACES[:, 0] * PLACES[:, 1]) == pytest.approx([3 / 7, 3 / 7, 0], abs=0.06)


def test_shares_are_of_the_whole_cube_wherever_points_are_dense():
    crowded = PLACES**2
    assert shares(2 * crowded[:, 0] + crowded[:, 1], crowded) == pytest.approx([0.8, 0.2, 0], abs=0.08)


def test_nothing_varies():
    assert shares(np.ones(400)) is None
    assert shares(np.arange(4.0), PLACES[:4]) is None
