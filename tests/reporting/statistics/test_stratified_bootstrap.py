"""Aggregates over tasks: hand-computed, and intervals for few seeds."""

import random

import numpy as np
import pytest
import scipy

from activemem.reporting.statistics import (
    INTERQUARTILE_MEAN,
    MEAN,
    MEDIAN,
    aggregate_all,
    optimality_gap,
    probability_of_improvement,
    share_above,
)

RUNS = [(0.1, 0.3, 0.2), (0.5, 0.9, 0.7), (1.2, 1.0, 0.8)]
DRAW = {"resamples": 4_000, "seed": 1}


def one(statistic, runs=RUNS):
    return aggregate_all(runs, {"it": statistic}, **DRAW)["it"]


def test_values_are_those_of_the_definitions():
    assert one(INTERQUARTILE_MEAN).value == pytest.approx(scipy.stats.trim_mean(np.concatenate(RUNS), 0.25))
    assert one(MEAN).value == pytest.approx((0.2 + 0.7 + 1) / 3)
    assert one(MEDIAN).value == pytest.approx(0.7)
    assert one(optimality_gap(1.0)).value == pytest.approx((0.8 + 0.3 + (0.2 + 0) / 3) / 3)
    assert one(optimality_gap(0.5, sign=-1)).value == pytest.approx((0 + 0.2 + 0.5) / 3)
    assert one(share_above(0.5)).value == pytest.approx((0 + 2 / 3 + 1) / 3)


def test_better_is_the_statistic_of_mann_and_whitney():
    other = [(0.2, 0.2, 0.4), (0.1, 0.6, 0.8), (0.7, 0.8, 0.9)]
    by_task = [scipy.stats.mannwhitneyu(a, b).statistic / 9 for a, b in zip(RUNS, other, strict=True)]
    found = probability_of_improvement(RUNS, other, **DRAW)
    assert found.value == pytest.approx(np.mean(by_task))
    assert 0 <= found.low < found.value < found.high <= 1
    turned = probability_of_improvement(RUNS, other, sign=-1, **DRAW)
    assert turned.value == pytest.approx(1 - found.value)


def test_the_interval_of_one_tasks_mean_is_students():
    draw = random.Random(0)
    runs = [draw.random() for _ in range(5)]
    found = one(MEAN, [runs])
    half = scipy.stats.sem(runs) * scipy.stats.t.ppf(0.975, 4)
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.03)


def test_an_interval_ends_at_the_value_of_the_lowest_and_highest_scores_of_all_tasks():
    runs, limits = [(0.1, 0.9), (0.2, 1.2)], [(0.0, 1.0), (-np.inf, 1.25)]
    statistics = {"mean": MEAN, "iqm": INTERQUARTILE_MEAN, "gap": optimality_gap(2.0)}
    found = aggregate_all(runs, statistics, **DRAW, limits=limits)
    assert (found["mean"].high, found["iqm"].high) == (1.125, 1.125)
    assert found["gap"].low == 2.0 - 1.125
    assert found["mean"].low < -0.5
    bounded = aggregate_all(runs, statistics, **DRAW, limits=[(0.0, 1.0), (-1.0, 1.25)])
    assert bounded["mean"].low == -0.5


def test_where_nothing_is_known_there_is_no_interval():
    assert one(MEAN, [(1.0,), (2.0,)]).low is None
    assert one(MEAN, [(1.0, 1.0), (2.0, 2.0)]).low is None
    assert probability_of_improvement([(3.0, 4.0)], [(1.0, 2.0)], **DRAW).high is None
    assert one(share_above(0.05)).low is None


def test_one_seed_draws_one_interval():
    assert one(MEAN) == one(MEAN)
