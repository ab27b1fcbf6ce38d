"""Figures of a search, by their values."""

import pytest

from activemem import StudyResults, load_study
from activemem.reporting.curves.curve import Point
from activemem.reporting.kinds.pareto import Cloud, pareto_front
from activemem.reporting.kinds.points import PointTrace
from activemem.storage import Store

from .conftest import PRUNES, SEARCH

FIGURES = '[[curve]]\nname = "history"\nkind = "points"\n'
FIGURES += '[[curve]]\nname = "front"\nkind = "points"\nx = "parameters"\n'
HOURS = '[[curve]]\nname = "hours"\nkind = "points"\nx = "hours"\nvalue = "loss"\n'


@pytest.fixture(scope="module")
def figures(search_store):
    results = StudyResults(load_study(SEARCH + FIGURES + HOURS, PRUNES), search_store)
    return {each.name: each for each in results.curves()}


def content(figures, name):
    return [panel.content for panel in figures[name].panels]


def test_the_best_so_far_never_falls(figures):
    [trace] = content(figures, "history")
    assert isinstance(trace, PointTrace)
    assert [(point.x, point.y) for point in trace.points] == [(1, 11), (2, 8), (3, 15), (6, 17.5), (7, 14)]
    assert [(point.x, point.y) for point in trace.best] == [
        (1, 11), (3, 11), (3, 15), (6, 15), (6, 17.5), (7, 17.5)
    ]  # fmt: skip
    assert figures["history"].notes[1].startswith("5 points, ")


def test_hours_are_of_all_trainings_and_a_loss_is_better_where_it_is_lower(figures):
    [trace] = content(figures, "hours")
    assert [point.x for point in trace.points] == [1, 2, 3, 6, 7]
    assert trace.best[-1].y == min(point.y for point in trace.points)


def test_no_point_passes_the_front(figures):
    [cloud] = content(figures, "front")
    assert isinstance(cloud, Cloud)
    assert [(point.x, point.y) for point in cloud.front] == [(1000, 8), (1500, 15), (1700, 17.5)]
    assert (len(cloud.lines), cloud.steps) == (5, "post")


def test_a_front_of_equal_points_has_one():
    def front(pairs, signs):
        return [(point.x, point.y) for point in pareto_front([Point(x=x, y=y) for x, y in pairs], signs)]

    assert front([(1, 1), (1, 1), (2, 0), (0, 0)], (1, 1)) == [(1, 1), (2, 0)]
    assert front([(1, 5), (2, 5), (3, 6)], (-1, 1)) == [(1, 5), (3, 6)]


def test_figures_are_drawn_the_same_each_time(figures):
    drawn = {name: each.render("svg") for name, each in figures.items() if name != "hours"}
    assert all(b"<path" in picture for picture in drawn.values())
    assert drawn["front"] == figures["front"].render("svg")


def test_a_search_without_points_has_nothing_to_draw(tmp_path):
    for each in StudyResults(load_study(SEARCH + FIGURES), Store(tmp_path)).curves():
        assert any(note.startswith("Nothing to draw") for note in each.notes)
        assert each.render("svg")
