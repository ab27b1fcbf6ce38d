"""Repeated tests of growing data: their levels against Pocock's table and a simulation."""

import numpy as np
import pytest

from activemem.reporting.statistics.look_levels import look_level, p_over_looks
from activemem.studies.claims.interim_tests import looks


@pytest.mark.parametrize(
    ("number", "level"), [(1, 0.05), (2, 0.0294), (3, 0.0221), (4, 0.0182), (5, 0.0158), (10, 0.0106)]
)
def test_evenly_spaced_looks_have_the_levels_of_pocock(number, level):
    assert look_level(tuple(range(1, number + 1)), 0.05) == pytest.approx(level, abs=6e-5)


def test_looks_that_are_not_evenly_spaced_keep_the_chance_of_any_false_finding():
    counts = looks(3, 24)
    assert counts == (3, 5, 8, 12, 18, 24)
    level = look_level(counts, 0.05)
    walks = np.random.default_rng(0).normal(size=(200_000, 24)).cumsum(axis=1)
    scores = np.abs(walks[:, np.array(counts) - 1] / np.sqrt(counts))
    edge = -np.sqrt(2) * _inverse_erfc(level)
    assert (scores > edge).any(axis=1).mean() == pytest.approx(0.05, abs=0.0015)
    assert look_level(counts, 0.01) < 0.01 / 2 < level


def test_p_over_looks_is_where_their_level_is_p():
    for counts in ((7,), (3, 5, 8, 12), (10, 15, 23, 24)):
        for alpha in (0.3, 0.05, 0.05 / 12):
            assert p_over_looks(counts, look_level(counts, alpha)) == pytest.approx(alpha)
    assert p_over_looks((3, 5), 1e-9) == 2e-9
    assert p_over_looks((3, 5), 1.0) == 1.0


def test_there_is_no_second_look_where_no_seed_may_be_added():
    assert looks(3, 3) == (3,)


def _inverse_erfc(level):
    from scipy.special import ndtri

    return ndtri(level / 2) / np.sqrt(2)
