"""Which dimensions of a search matter, of points whose values are known."""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from activemem.reporting.results import StudyResults
from activemem.reporting.search.importance import find_importances
from activemem.studies.planning.trial_values import ValueStatus
from activemem.studies.searches.points import FoundPoint, SearchPoints, search_goals
from activemem.studies.study import load_study

from .conftest import CONV, SEARCH

TABLE = '[[table]]\nname = "i"\nkind = "importance"\nresamples = 20\n'


def made(count):
    """Points of which those with a convolution are better the nearer k is to 6, whatever the rate."""
    drawn, points = random.Random(0), []
    for number in range(count):
        values = {"lr": 10 ** drawn.uniform(-4, -1), "choice": "sa"}
        length = 10.0
        if number % 3:
            k = drawn.randint(2, 9)
            values |= {"choice": CONV, "conv.k": k}
            length = 20.0 - 2 * abs(k - 6)
        points.append(
            FoundPoint(
                values=values,
                trials=(str(number),),
                seeds=1,
                measured={"max_length": {0: length + drawn.gauss(0, 0.1)}},
                status=ValueStatus.DONE,
                seconds=1.0,
                finished=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number),
            )
        )
    goals = search_goals(load_study(SEARCH))
    return SearchPoints(goals=goals, points=tuple(points), gaps=Counter(), trained=(), not_finite={})


@pytest.fixture(scope="module")
def found():
    dimensions = load_study(SEARCH).dimensions
    return find_importances(dimensions, made(60), "max_length", 1, top=0.2, resamples=10, seed=0)


def test_a_conditional_dimension_is_told_among_the_points_that_take_it(found):
    by_name = {each.name: each for each in found.dimensions}
    assert list(by_name)[-1] == "conv.k"
    assert (by_name["conv.k"].points, by_name["conv.k"].is_everywhere) == (40, False)
    assert by_name["conv.k"].variance.value > 0.9
    assert by_name["choice"].variance.value > by_name["lr"].variance.value
    assert by_name["conv.k"].best.value > by_name["lr"].best.value


def test_shares_have_intervals_and_are_the_same_each_time(found):
    dimensions = load_study(SEARCH).dimensions
    one, again = (
        find_importances(dimensions, made(12), "max_length", 1, top=0.2, resamples=2, seed=0) for _ in "ab"
    )
    assert one == again
    for each in found.dimensions:
        assert 0 <= each.variance.low <= each.variance.high <= 1
    own = [each for each in found.dimensions if each.is_everywhere]
    assert sum(each.variance.value for each in own) + found.rest.value == pytest.approx(1)


def test_few_points_say_nothing(search_store):
    few = find_importances(
        load_study(SEARCH).dimensions, made(9), "max_length", 1, top=0.2, resamples=20, seed=0
    )
    assert {(each.variance, each.best) for each in few.dimensions} == {(None, None)}
    table = StudyResults(load_study(SEARCH + TABLE), search_store).table().table
    assert "With fewer than 10 points nothing can be said." in table.caption
    assert table.rows == ("lr", "choice", "conv.k")
