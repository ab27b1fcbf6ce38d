"""Figures of a search, by their values."""

from random import Random
from types import SimpleNamespace

import pytest

from activemem.reporting.curves.curve import Cloud, Lines, Parallel, Plane, PointTrace, Shaded, Slice
from activemem.reporting.curves.search.planes import contour_planes
from activemem.reporting.results import StudyResults
from activemem.reporting.search.fronts import front_of, hypervolumes
from activemem.storage import Store
from activemem.studies.study import load_study

from .conftest import CONV, POINTS, SEARCH, fill_search

KINDS = ("incumbent", "front", "hypervolume", "slices", "parallel", "contour", "rank")
FIGURES = "".join(f'[[curve]]\nname = "{kind}"\nkind = "{kind}"\n' for kind in KINDS)
PLANES = """[[curve]]
name = "planes"
kind = "rank"
dimensions = ["conv.k", "lr"]

[[curve]]
name = "beside"
kind = "hypervolume"
against = "other"
"""
HOURS = '[[curve]]\nname = "hours"\nkind = "incumbent"\nx = "hours"\nvalue = "loss"\n'


@pytest.fixture(scope="module")
def figures(search_store):
    results = StudyResults(load_study(SEARCH + FIGURES + PLANES + HOURS), search_store)
    return {each.curve.name: each for each in results.curves()}


def content(figures, name):
    return [panel.content for panel in figures[name].curve.panels]


def test_the_best_so_far_never_falls(figures):
    [trace] = content(figures, "incumbent")
    assert isinstance(trace, PointTrace)
    assert [(point.x, point.y) for point in trace.points] == [(1, 11), (2, 8), (3, 15), (6, 17.5), (7, 14)]
    assert [(point.x, point.y) for point in trace.best] == [
        (1, 11), (3, 11), (3, 15), (6, 15), (6, 17.5), (7, 17.5)
    ]  # fmt: skip
    assert figures["incumbent"].curve.notes[1] == "5 points, each the mean of 2 seeds."


def test_hours_are_of_all_trainings_and_a_loss_is_better_where_it_is_lower(figures):
    [trace] = content(figures, "hours")
    assert [point.x for point in trace.points] == [1, 2, 3, 6, 7]
    assert trace.best[-1].y == min(point.y for point in trace.points)


def test_no_point_passes_the_front(figures):
    [cloud] = content(figures, "front")
    assert isinstance(cloud, Cloud)
    assert [(point.x, point.y) for point in cloud.front] == [(1000, 8), (1500, 15), (1700, 17.5)]
    assert (len(cloud.lines), cloud.steps) == (5, "post")


def test_the_hypervolume_grows_to_that_of_the_whole_front(figures):
    [lines] = content(figures, "hypervolume")
    assert isinstance(lines, Lines)
    heights = [point.y for point in lines.lines[0].points]
    assert heights == sorted(heights)
    # widths and heights in the box of 1000 to 3000 parameters and lengths 8 to 17.5, counted by hand
    assert heights[-1] == pytest.approx(0.65 * 1 + 0.1 * 7 / 9.5)


def test_a_front_of_equal_points_has_one_and_what_is_worst_in_both_fills_nothing():
    assert front_of([(1, 1), (1, 1), (2, 0), (0, 0)], (1, 1)) == [0, 2]
    assert front_of([(1, 5), (2, 5), (3, 6)], (-1, 1)) == [0, 2]
    assert hypervolumes([(0, 0), (1, 1)], (1, 1)) == [0, 1]
    assert hypervolumes([(1, 0), (0.5, 0.5), (0, 1)], (1, 1)) == [0, 0.25, 0.25]
    assert hypervolumes([], (1, 1)) == []


def test_a_slice_has_the_points_that_take_its_dimension(figures):
    panels = {panel.title: panel.content for panel in figures["slices"].curve.panels}
    assert list(panels) == ["lr", "choice", "conv.k"]
    assert isinstance(panels["lr"], Slice)
    assert panels["lr"].axis.log
    assert panels["choice"].axis.ticks == ((0.0, "sa"), (1.0, "conv"))
    assert [(point.x, point.y) for point in panels["conv.k"].points] == [(3, 8), (5, 15), (6, 17.5)]
    assert (panels["conv.k"].best.x, panels["conv.k"].best.y) == (6, 17.5)
    assert "Not every point takes conv.k." in figures["slices"].curve.notes


def test_points_over_two_dimensions_are_darker_the_better_they_rank(figures):
    [both] = content(figures, "planes")
    assert isinstance(both, Plane)
    assert both.x.log
    assert both.points == (
        Shaded(x=(0.001, 0.001), y=(3, 3), share=0),
        Shaded(x=(0.002, 0.002), y=(5, 5), share=0.5),
        Shaded(x=(0.004, 0.004), y=(6, 6), share=1),
    )
    assert "A panel has the points that take both of its dimensions." in figures["planes"].curve.notes
    [first] = content(figures, "rank")
    assert [panel.title for panel in figures["rank"].curve.panels] == ["lr over choice"]
    assert [(point.x[0], point.share) for point in first.points] == [
        (1, 0), (0, 0.25), (0, 0.5), (1, 0.75), (1, 1)
    ]  # fmt: skip


def test_a_contour_is_what_is_expected_over_all_other_dimensions():
    study = load_study(SEARCH + FIGURES)
    draw = Random(0)
    points = [
        SimpleNamespace(
            values={"lr": 10 ** draw.uniform(-4, -1), "choice": CONV, "conv.k": draw.randint(2, 9)}
        )
        for _ in range(200)
    ]
    for point in points:
        k, lr = point.values["conv.k"], point.values["lr"]
        point.mean = lambda _, found=k + (10 if lr > 0.01 else 0): found
    found = SimpleNamespace(complete=points, sign=lambda _: 1)
    metric = SimpleNamespace(name="max_length")
    planes = contour_planes(study, found, metric, ["conv.k", "choice", "lr"])
    by_choice, by_rate = (panel.content for panel in planes.panels)
    expected = {cell.y: planes.low + cell.share * (planes.high - planes.low) for cell in by_choice.cells}
    # the mean over rates: a third of their logarithms is above 0.01
    assert all(expected[k - 0.5, k + 0.5] == pytest.approx(k + 10 / 3, abs=1) for k in range(3, 9))
    assert len(by_choice.cells) == 8  # of the option that has a kernel
    assert len(by_rate.cells) == 24 * 8
    low, high = (
        next(each.share for each in by_rate.cells if each.x[1] > lr and each.y == (4.5, 5.5))
        for lr in (2e-4, 0.05)
    )
    assert (high - low) * (planes.high - planes.low) == pytest.approx(10, abs=1)
    few = contour_planes(
        study, SimpleNamespace(complete=points[:5], sign=found.sign), metric, ["conv.k", "lr"]
    )
    assert (few.low, few.panels[0].content.cells) == (None, ())


def test_a_hypervolume_beside_another_search_is_of_one_box(search_store, tmp_path, figures):
    assert (
        "Beside it other, a search of the same space, of which no point is done."
        in figures["beside"].curve.notes[0]
    )
    store, study = Store(tmp_path), load_study(SEARCH + FIGURES + PLANES)
    fill_search(store, study, POINTS)
    fill_search(
        store,
        load_study(SEARCH.replace('"found"', '"other"')),
        [({"lr": 0.03, "choice": "sa"}, (4.0, 6.0), 5000)],
    )
    curve = StudyResults(study, store).curve("beside").curve
    own, other = curve.panels[0].content.lines
    assert (own.name, own.accent, other.name) == ("found", True, "other")
    # the box is 1000 to 5000 parameters and lengths 5 to 17.5
    assert own.points[-1].y == pytest.approx(((5000 - 1700) * 12.5 + 200 * 10 + 500 * 3) / (4000 * 12.5))
    assert other.points[-1].y == 0


def test_lines_pass_below_an_axis_that_they_do_not_take(figures):
    [parallel] = content(figures, "parallel")
    assert isinstance(parallel, Parallel)
    assert [axis.title for axis in parallel.axes] == ["lr", "choice", "conv.k", "max_length"]
    best = parallel.lines[-1]
    assert (best.is_best, best.heights[1:]) == (True, (0.75, pytest.approx(4 / 7), 1.0))
    assert sum(line.heights[2] is None for line in parallel.lines) == 2


def test_figures_are_drawn_the_same_each_time(figures):
    drawn = {name: each.render("svg") for name, each in figures.items() if name != "hours"}
    assert all(b"<path" in picture for picture in drawn.values())
    assert drawn["parallel"] == figures["parallel"].render("svg")


def test_a_search_without_points_has_nothing_to_draw(tmp_path):
    for each in StudyResults(load_study(SEARCH + FIGURES), Store(tmp_path)).curves():
        assert "Nothing to draw: no point of it is done." in each.curve.notes
        assert each.render("svg")
