"""Figures as files: identical bytes for identical data, compared with golden files."""

import re
from dataclasses import replace
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree

import matplotlib
import pytest

from activemem import load_study
from activemem.reporting import Curve
from activemem.reporting.curves.curve import Axis, Bar, Line, Panel, Point
from activemem.reporting.curves.draw.figure import draw
from activemem.reporting.curves.figure_format import FigureFormat
from activemem.reporting.kinds.bar import Bars
from activemem.reporting.kinds.box import Box, Boxes
from activemem.reporting.kinds.heat import Matrix
from activemem.reporting.kinds.line import Lines
from activemem.reporting.kinds.pareto import Cloud
from activemem.reporting.kinds.scaling import Scaling, ScalingSeries

from ..curve_factories import STUDY_TEXT, make_curve, make_store

GOLDEN = Path(__file__).with_name("golden")
CONSTRAINTS = Path(__file__).parents[4] / "constraints.txt"
PINNED = re.search(r"^matplotlib==(.*)$", CONSTRAINTS.read_text(encoding="utf-8"), re.MULTILINE)


def curve(*contents, **changes):
    titles = [""] if len(contents) == 1 else [str(number) for number in range(len(contents))]
    panels = tuple(Panel(title=t, content=each) for t, each in zip(titles, contents, strict=True))
    plain = Curve(
        name="it", caption="It", notes=(), x=Axis(title="x"), y=Axis(title="it"), panels=panels, provenance=""
    )
    return replace(plain, **changes)


def points(*ys):
    return tuple(Point(x=x, y=y, low=y - 1, high=y + 1, n=3) for x, y in enumerate(ys, start=1))


LINES = Lines(
    lines=(
        Line(name="a", points=points(1, 2, 3)),
        Line(name="b", number=1, points=points(3, 2, 3), accent=True),
    )
)
BARS = Bars(
    bars=(
        Bar(name="a", text="3.0", value=3.0, low=2.0, high=4.0, published=2.5),
        Bar(name="b", text="1.0", value=1.0, accent=True),
        Bar(name="c", text="failed"),
    ),
    points=False,
)
BOXES = (
    Box(name="a", at=0, n=12, quartiles=(1, 2, 3), whiskers=(0, 4), values=(7.0,)),
    Box(name="b", at=1, n=3, values=(1.0, 2.0, 2.5), accent=True),
    Box(name="c", at=2, n=0, text="failed"),
)
MATRIX = Matrix(
    rows=("a", "b"),
    columns=("c", "d"),
    values=((1.0, 2.0), (3.0, None)),
    texts=(("1", "2"), ("3", "–")),
    ends=((1.0, "1"), (3.0, "3")),
)
CLOUD = Cloud(
    lines=(Line(name="a", points=points(3, 2)), Line(name="b", points=points(2.5, 1, 4), accent=True)),
    front=(points(2.5)[0], points(2.5, 1)[1]),
    steps="post",
)
SCALING = Scaling(
    series=(
        ScalingSeries(
            name="a",
            number=0,
            points=points(4, 3, 2),
            line=points(4, 3, 2),
            exponent="exponent −0.500 ± 0.100",
        ),
        ScalingSeries(name="b", number=0, points=points(8), accent=True),
    )
)
KINDS = {
    "lines": curve(LINES),
    "bars": curve(BARS),
    "points": curve(replace(BARS, points=True)),
    "boxes": curve(Boxes(boxes=BOXES, rows=True)),
    "upright": curve(Boxes(boxes=BOXES[:2], rows=False)),
    "heat": curve(MATRIX),
    "pairs": curve(replace(MATRIX, pairs=(0,))),
    "pareto": curve(CLOUD),
    "scaling": curve(SCALING, x=Axis(title="x", log=True), y=Axis(title="y", log=True)),
    "panels": curve(LINES, Lines(lines=LINES.lines[:1], context=LINES.lines[1:])),
}
EMPTY = {
    "lines": Lines(lines=()),
    "bars": Bars(bars=(), points=False),
    "boxes": Boxes(boxes=(), rows=True),
    "upright": Boxes(boxes=(), rows=False),
    "heat": Matrix(rows=(), columns=(), values=(), texts=(), ends=((0.0, ""), (0.0, ""))),
    "pareto": Cloud(lines=(), front=(), steps="post"),
    "scaling": Scaling(series=()),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.skipif(
    PINNED is None or matplotlib.__version__ != PINNED[1], reason="another matplotlib draws other bytes"
)
def test_every_kind_is_drawn_as_its_golden_file_has_it(kind):
    golden = GOLDEN / f"{kind}.svg"
    drawn = draw(KINDS[kind], "svg")
    assert drawn == golden.read_bytes(), "if meant: python -m tests.reporting.curves.draw.test_figures"


@pytest.mark.parametrize("form", get_args(FigureFormat))
def test_one_figure_is_one_file_whatever_the_user_has_set(form):
    first = draw(KINDS["lines"], form)
    with matplotlib.rc_context({"font.size": 30, "axes.grid": True, "svg.fonttype": "none"}):
        assert draw(KINDS["lines"], form) == first
        assert matplotlib.rcParams["font.size"] == 30
    assert first.startswith({"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}[form])


@pytest.mark.parametrize("kind", EMPTY)
def test_a_figure_of_nothing_is_drawn_too(kind):
    ElementTree.fromstring(draw(curve(EMPTY[kind]), "svg"))


@pytest.mark.parametrize("form", get_args(FigureFormat))
def test_names_are_text_whatever_signs_they_have(form):
    odd = "$x^2$ <&> \N{CJK UNIFIED IDEOGRAPH-6F22}\\frac{" + "long " * 30
    lines = Lines(lines=(replace(LINES.lines[0], name=odd), LINES.lines[1]))
    drawn = draw(curve(lines, caption=odd, notes=(odd,), y=Axis(title=odd)), form)
    if form == "svg":
        ElementTree.fromstring(drawn)
    assert drawn == draw(curve(lines, caption=odd, notes=(odd,), y=Axis(title=odd)), form)


def test_a_caption_is_the_title_of_the_file_and_no_date_is_in_it():
    drawn = draw(KINDS["bars"], "svg").decode()
    assert "<title>It</title>" in drawn
    assert "date" not in drawn.lower()
    assert b"CreationDate" not in draw(KINDS["bars"], "pdf")


def test_logarithmic_axes_show_zero_in_front():
    line = Line(name="", points=tuple(Point(x=x, y=y) for x, y in ((0, 1), (1, 10), (10, 100), (100, 1000))))
    ticks = tuple((place, f"{place}") for place in (0, 1, 10, 100))
    made = curve(Lines(lines=(line,)), x=Axis(title="x", log=True, ticks=ticks), y=Axis(title="y", log=True))
    found = re.search(
        rb'<g id="line2d_[0-9]+">\s*<path d="(M[^"]*)" style="fill: none; stroke: #1a1a1a', draw(made, "svg")
    )
    assert found is not None
    numbers = [float(number) for number in re.findall(rb"[0-9.]+", found[1])]
    steps = [round(b - a) for a, b in zip(numbers[:-2:2], numbers[2::2], strict=True)]
    assert len(steps) == 3
    assert len(set(steps)) == 1  # from 0 to 1 as far as from 1 to 10


def test_lines_have_a_colour_each_unless_one_is_accented():
    lines = tuple(Line(name=f"line {number}", number=number, points=points(number)) for number in range(6))
    found = set(re.findall(rb"stroke: (#[0-9a-f]{6})", draw(curve(Lines(lines=lines)), "svg")))
    assert {b"#1a1a1a", b"#0072b2", b"#d55e00", b"#00805d", b"#b8558e"} < found
    accented = (*lines[:4], replace(lines[4], accent=True))
    found = set(re.findall(rb"stroke: (#[0-9a-f]{6})", draw(curve(Lines(lines=accented)), "svg")))
    assert [color for color in found if len({color[1:3], color[3:5], color[5:]}) > 1] == [b"#d55e00"]


def test_a_point_without_its_diverged_seeds_is_hollow_and_its_neighbour_keeps_its_interval():
    ends = Point(x=1, y=2, low=1, high=3, n=3), Point(x=2, y=1, diverged=2)
    made = curve(Lines(lines=(Line(name="a", points=ends),)))
    sound = curve(
        Lines(lines=(Line(name="a", points=(replace(ends[0], low=None), replace(ends[1], diverged=0))),))
    )
    for each, count in ((made, 1), (sound, 0)):
        drawn = draw(each, "svg")
        assert drawn.count(b"LineCollection") == count
        assert drawn.count(b'style="fill: #ffffff; stroke: #1a1a1a') == count
    assert made.point_words(ends[1], "a") == "a, x 2: it 1, 2 diverged"


def test_panels_with_scales_of_their_own_have_ticks_of_their_own():
    panels = (LINES, Lines(lines=(Line(name="a", points=points(100, 200)),)))
    drawn = [draw(curve(*panels, own_scales=own), "svg").decode() for own in (True, False)]
    ticks = [re.findall("<!-- ([0-9]+) -->", each) for each in drawn]
    assert ticks[0].count("100") == ticks[0].count("4") == 1
    assert "4" not in ticks[1]


def test_only_losses_of_several_tasks_have_scales_of_their_own(tmp_path):
    study = load_study(STUDY_TEXT)
    found = make_store(study, tmp_path)
    frames = found.trials(), found.metrics()
    line = {"kind": "line", "x": "epoch", "series": "mixer"}
    task = {"panels": "task", "select": {"filter": 8}}
    loss = make_curve(study, frames, **line, **task, value="loss")
    assert loss.own_scales
    assert any("scales of its own" in note for note in loss.notes)
    assert not make_curve(study, frames, **line, **task, value="length").own_scales
    sizes = {"panels": "filter", "select": {"task": "sort"}}
    assert not make_curve(study, frames, **line, **sizes, value="loss").own_scales


def test_ticks_that_would_overlap_have_no_text():
    ticks = tuple((place, f"level {place}") for place in (1, 2, 3, 1000))
    line = Line(name="", points=tuple(Point(x=place, y=1) for place, _ in ticks))
    drawn = draw(curve(Lines(lines=(line,)), x=Axis(title="x", ticks=ticks)), "svg").decode()
    assert re.findall("<!-- (level [0-9]+) -->", drawn) == ["level 1", "level 1000"]


def test_every_kind_is_drawn_from_a_store(tmp_path):
    study = load_study(STUDY_TEXT)
    found = make_store(study, tmp_path)
    frames = found.trials(), found.metrics()
    sort = {"task": "sort", "filter": 8}
    for spec in (
        {"kind": "line", "value": "length", "x": "epoch", "series": "mixer", "select": sort},
        {"kind": "bar", "value": "loss", "x": "mixer", "panels": "filter", "select": {"task": "reverse"}},
        {"kind": "box", "value": "memory_change", "x": "mixer", "select": sort},
        {"kind": "heat", "value": "loss", "x": "filter", "y": "mixer", "select": {"task": "sort"}},
        {"kind": "pareto", "value": "loss", "x": "parameters", "series": "mixer", "logx": True},
    ):
        ElementTree.fromstring(draw(make_curve(study, frames, **spec), "svg"))


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for name, each in KINDS.items():
        (GOLDEN / f"{name}.svg").write_bytes(draw(each, "svg"))


def test_a_figure_in_a_page_shows_the_values_of_its_marks():
    name = curve(LINES, name="first").render_inline()
    titles = re.findall("<title>(.*?)</title>", name)
    assert titles[0] == "a, x 1: it 1 [0, 2], n = 3"
    assert len(titles) == 6
    assert "published 2.5" in curve(BARS).render_inline()
    assert "style" not in name
    other = curve(LINES, name="second").render_inline()
    ids = [set(re.findall(' id="(.*?)"', svg)) for svg in (name, other)]
    assert ids[0]
    assert ids[0].isdisjoint(ids[1])
    links = set(re.findall(r'(?:href="|url\()#([^")]*)', name))
    assert links <= ids[0]


def test_a_figure_with_many_marks_has_titles_for_some_of_them():
    many = Lines(lines=(Line(name="a", points=points(*range(5000))),))
    assert 500 < curve(many).render_inline().count("<title>") <= 1000
