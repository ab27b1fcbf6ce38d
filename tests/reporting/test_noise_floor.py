"""Spread over seeds: pooled over cells, and the detectable difference."""

import json
from statistics import stdev

import polars as pl
import pytest

from activemem.reporting.search import noise_floor
from activemem.storage import trial_frame

from ..storage.factories import make_trial_row


def rows(*cells):
    """Return a frame of cells with the values of their seeds."""
    frames = [
        trial_frame(
            make_trial_row(
                10 * cell + seed,
                seed=seed,
                settings=json.dumps({"model": {"recipe": f"ff({cell + 1})"}, "seed": seed}),
                metrics=(("accuracy", value),),
            )
        )
        for cell, values in enumerate(cells)
        for seed, value in enumerate(values)
    ]
    return pl.concat(frames)


def test_the_spread_is_that_of_differences_paired_by_seed():
    found = noise_floor(rows((1.0, 3.0, 2.0), (4.0, 7.0, 5.0), (5.0, 5.0, 5.0), (9.0,)), "accuracy", seeds=3)
    assert (found.cells, found.degrees, found.seeds) == (3, 2, 3)  # of the two cells that vary
    assert found.sd == pytest.approx(stdev((3.0, 4.0, 3.0)) / 2**0.5)


def test_a_single_cell_that_varies_has_its_own_spread():
    found = noise_floor(rows((1.0, 3.0), (5.0, 5.0, 5.0), (9.0,)), "accuracy", seeds=2)
    assert (found.cells, found.degrees) == (2, 1)
    assert found.sd == pytest.approx(stdev((1.0, 3.0)))


def test_more_seeds_see_smaller_differences_and_far_more_than_the_error_is_needed():
    few, many = (noise_floor(rows((1.0, 3.0, 2.0), (4.0, 5.0, 6.0)), "accuracy", seeds=n) for n in (2, 8))
    assert few.difference == pytest.approx(2 * many.difference)
    assert few.difference > 2.8 * few.sd  # what normal numbers would need, of one standard error


def test_without_two_seeds_of_a_cell_nothing_is_known():
    assert noise_floor(rows((1.0,), (2.0,)), "accuracy", seeds=3) is None
    assert noise_floor(rows((1.0, 2.0)), "loss", seeds=3) is None
