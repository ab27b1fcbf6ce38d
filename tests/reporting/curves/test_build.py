"""Every number in a figure, from a store with known numbers."""

import re

import polars as pl
import pytest

from activemem import StudyError, load_study, register_metric
from activemem.reporting import CurveError
from activemem.reporting.curves.cell_figure import mean_interval
from activemem.reporting.kinds import build_curve
from activemem.storage import Store
from activemem.studies import METRICS
from activemem.studies.catalog.metrics import find_metric

from .curve_factories import STUDY_TEXT, figure, make_curve, make_rows, make_store


@pytest.fixture(scope="module")
def study():
    return load_study(STUDY_TEXT)


@pytest.fixture(scope="module")
def frames(study, tmp_path_factory):
    found = make_store(study, tmp_path_factory.mktemp("results"))
    return found.trials(), found.metrics()


@pytest.fixture
def drawn(study, frames):
    return lambda **spec: make_curve(study, frames, **spec)


def only(made):
    assert len(made.panels) == 1
    return made.panels[0].content


def test_a_line_has_the_mean_of_the_seeds_at_every_level_with_its_band(drawn, golden):
    made = drawn(kind="line", value="max_length", x="filter", series="mixer", select={"task": "sort"})
    lines = only(made).lines
    assert [line.name for line in lines] == ["sa", "conv", "sa + conv"]
    assert [(p.x, p.y, round(p.low, 6), round(p.high, 6), p.n) for p in lines[1].points] == [
        (8, 21, 20.9, 21.1, 3),
        (80, 22, 21.9, 22.1, 3),
        (800, 23, 22.9, 23.1, 3),
    ]
    golden(made.caption)
    golden(made.notes)
    assert made.x.ticks == ((8, "8"), (80, "80"), (800, "800"))
    assert made.provenance == "27 trials · activemem 0.1.0 · a processor · 2026-11-28"


@pytest.mark.parametrize(
    ("spread", "half", "called"),
    [
        ("sd", 0.1, "± 1 s.d"),
        ("se", 0.1 / 3**0.5, "± 1 standard error"),
        ("ci", 4.302653 * 0.1 / 3**0.5, "95 % t interval"),
    ],
)
def test_a_whisker_is_what_the_study_asks_for_and_the_note_says_which(drawn, spread, half, called):
    select = {"task": "sort", "filter": 8}
    made = drawn(kind="bar", value="max_length", x="mixer", select=select, spread=spread)
    bar = only(made).bars[0]
    assert (bar.value, bar.text) == (11, "11.0")
    assert (bar.low, bar.high) == pytest.approx((11 - half, 11 + half))
    (note,) = made.notes
    assert re.fullmatch(rf"Bar: .*\b3 seeds; .* {called}\.", note)


@pytest.fixture
def plugged_in():
    register_metric("coverage", title="Coverage", is_share=True, kinds=["tagging"])(lambda: None)
    yield
    METRICS.unregister("coverage")


@pytest.mark.parametrize("band", ["sd", "ci"])
@pytest.mark.parametrize(
    ("name", "ends"),
    [
        *(("accuracy", (True, True)), ("coverage", (True, True))),
        *(("loss", (True, False)), ("steps", (True, False)), ("test_r2", (False, False))),
    ],
)
@pytest.mark.usefixtures("plugged_in")
def test_a_band_ends_where_no_value_can_be(name, ends, band):
    high = mean_interval([0.9, 1.0, 1.0], band, find_metric(name))[2]
    low = mean_interval([0.0, 0.0, 0.1], band, find_metric(name))[1]
    assert (low == 0.0, high == 1.0) == ends
    assert low <= 0.0
    assert high >= 1.0


def test_a_band_keeps_its_line_where_values_are_beyond_the_bounds():
    middle, low, _ = mean_interval([-2.0, -1.0, -3.0], "sd", find_metric("loss"))
    assert low == middle == -2.0


def test_a_learning_curve_runs_over_epochs_or_steps(drawn):
    made = drawn(
        kind="line", value="length", x="epoch", series="mixer", select={"task": "sort", "filter": 800}
    )
    assert [(p.x, p.y) for p in only(made).lines[0].points] == [
        (1, pytest.approx(13 / 3)),
        (2, pytest.approx(26 / 3)),
        (3, 13),
    ]
    assert made.caption == "Length, tokens, by epoch; filter 800; task sort"
    steps = drawn(
        kind="line", value="length", x="step", series="mixer", select={"task": "sort", "filter": 800}
    )
    assert [p.x for p in only(steps).lines[0].points] == [10, 20, 30]


def test_a_figure_shows_the_level_that_a_metric_picks_and_names_it(drawn, golden):
    picks = {"over": "filter", "pick_by": "max_length"}
    made = drawn(kind="line", value="length", x="epoch", series="mixer", select={"task": "reverse"}, **picks)
    # one seed of attention has no value at 800, so 80 is picked; a level of conv has not run
    assert [(line.name, line.points[-1].y, line.points[-1].n) for line in only(made).lines] == [
        ("sa", 12, 3),
        ("sa + conv", 33, 3),
    ]
    golden(made.notes)


def test_what_a_figure_picks_by_is_checked(golden):
    curve = 'name = "it"\nkind = "bar"\nx = "mixer"\nvalue = "loss"\nselect = { task = "sort" }\n'
    keys = ['over = "filter"', 'pick_by = "loss"', 'over = ["seed", "filtre"]\npick_by = "los"', ""]
    with golden.raises(StudyError):
        load_study(STUDY_TEXT + "".join(f"\n[[curve]]\n{curve}{each}" for each in keys))


def test_lengths_as_an_axis_lead_to_the_index():
    curve = 'name = "it"\nkind = "line"\nx = "length"\nvalue = "loss"\nselect = { task = "sort" }\n'
    with pytest.raises(StudyError, match='the test lengths of a task are x = "index"'):
        load_study(f"{STUDY_TEXT}\n[[curve]]\n{curve}")


def test_a_family_runs_over_its_index_each_range_in_its_middle(drawn):
    made = drawn(kind="line", value="bleu", x="index", series="mixer", select={"task": "sort", "filter": 8})
    assert [(p.x, p.y) for p in only(made).lines[0].points] == [(5, 11), (15, 10), (25, 9)]
    assert made.x.ticks == ((5, "0–10"), (15, "10–20"), (25, "20–30"))
    assert made.x.title == "Source length, words"
    assert made.caption == "BLEU by source length; filter 8; task sort"


def test_a_member_of_a_family_is_a_metric_of_its_own_where_it_is_final(study, frames):
    outcomes, metrics = frames
    finals = pl.col("metrics").list.eval(
        pl.struct(name=pl.lit("bleu[10-20]"), value=pl.element().struct.field("value"))
    )
    spec = figure(kind="bar", value="bleu[10-20]", x="mixer", select={"task": "sort", "filter": 8})
    made = build_curve(study, spec, outcomes.with_columns(finals), metrics)
    assert made.y.title == "BLEU, source length 10-20"
    assert [bar.text for bar in only(made).bars] == ["1.1", "2.1", "3.1"]


def test_trials_without_a_value_are_left_out_and_counted(drawn, golden):
    made = drawn(kind="bar", value="max_length", x="mixer", select={"task": "reverse", "filter": 8})
    assert [bar.text for bar in only(made).bars] == ["11.0", "failed", "31.0"]
    golden(made.notes)
    other = drawn(kind="bar", value="max_length", x="mixer", select={"task": "reverse", "filter": 800})
    golden(other.notes)


def test_a_mean_without_a_diverged_seed_is_marked_and_never_on_a_front(study, frames):
    outcomes, metrics = frames
    lost = {"mixer": "sa", "filter": 8, "task": "sort", "seed": 1}
    trials = [trial.id for trial in study.trials if trial.levels.items() >= lost.items()]
    rose = pl.when(pl.col("trial").is_in(trials)).then(pl.lit("rose from 1 to 2")).alias("diverged")
    strayed = outcomes.with_columns(rose), metrics
    select = {"task": "sort"}
    line = make_curve(
        study, strayed, kind="line", value="max_length", x="filter", series="mixer", select=select
    )
    assert [[point.diverged for point in each.points] for each in only(line).lines] == [
        [1, 0, 0],
        [0, 0, 0],
        [0, 0, 0],
    ]
    assert line.notes[1] == "Hollow: without the seeds that diverged or failed."
    bar = make_curve(
        study, strayed, kind="bar", value="max_length", x="mixer", select={**select, "filter": 8}
    )
    assert [each.text for each in only(bar).bars] == ["11.0*", "21.0", "31.0"]
    heat = make_curve(study, strayed, kind="heat", value="max_length", x="mixer", y="filter", select=select)
    assert [texts[0] for texts in only(heat).texts] == ["11.0*", "12.0", "13.0"]
    assert bar.notes[1] == heat.notes[1] == "*: without the seeds that diverged or failed."
    front = make_curve(study, strayed, kind="pareto", value="loss", x="parameters", select=select)
    assert [point.diverged for line in only(front).lines for point in line.points].count(1) == 1
    assert {point.diverged for point in only(front).front} == {0}
    assert front.notes[1] == "Cross, never on the front: without the seeds that diverged or failed."
    seeds = make_curve(
        study, strayed, kind="line", value="max_length", x="filter", series="seed",
        select={**select, "mixer": "sa"},
    )  # fmt: skip
    assert {point.diverged for each in only(seeds).lines for point in each.points} == {0}


def test_bars_are_points_where_zero_is_far(drawn):
    near = drawn(kind="bar", value="max_length", x="mixer", select={"task": "sort", "filter": 8})
    far = drawn(kind="bar", value="max_length", x="filter", select={"task": "sort", "mixer": "sa"})
    assert (only(near).points, only(far).points) == (False, True)
    assert [note.partition(":")[0] for note in (*near.notes, *far.notes)] == ["Bar", "Point"]
    assert [bar.name for bar in only(far).bars] == ["filter 8", "filter 80", "filter 800"]


def test_published_numbers_are_where_the_paper_has_them(drawn):
    bars = drawn(
        kind="bar", value="max_length", x="mixer", panels="task", select={"filter": 8}, published="table4"
    )
    assert [panel.title for panel in bars.panels] == ["sort", "reverse"]
    assert [bar.published for bar in bars.panels[0].content.bars] == [14.0, 20.7, 23.3]
    assert bars.notes[1] == "Diamonds: published, active-memory-transformer table4."


def test_a_box_has_the_quartiles_of_all_samples_of_all_seeds(drawn, golden):
    made = drawn(kind="box", value="memory_change", x="mixer", select={"task": "sort", "filter": 8})
    box = only(made).boxes[0]
    assert (box.n, box.quartiles, box.whiskers) == (33, pytest.approx((0.2, 0.5, 0.8)), (0.0, 1.0))
    golden(made.notes)


def test_a_box_of_few_values_is_the_values(drawn, golden):
    made = drawn(kind="box", value="max_length", x="mixer", select={"task": "sort", "filter": 8}, accent="sa")
    box = only(made).boxes[0]
    assert (box.n, box.quartiles, box.values, box.accent) == (3, None, (10.9, 11.0, 11.1), True)
    golden(made.notes)


def test_boxes_can_be_drawn_over_an_index(drawn):
    made = drawn(
        kind="box", value="memory_change", x="index", select={"task": "sort", "filter": 8, "mixer": "sa"}
    )
    assert [(box.at, box.values) for box in only(made).boxes][:2] == [(0, (0, 0, 0)), (1, (0.1, 0.1, 0.1))]
    assert not only(made).rows


def test_every_panel_has_the_same_rows_and_lines_whatever_is_missing(drawn):
    boxes = drawn(kind="box", value="max_length", x="mixer", panels="task", select={"filter": 8})
    sort, reverse = (panel.content.boxes for panel in boxes.panels)
    assert [(box.name, box.text) for box in reverse] == [("sa", ""), ("conv", "failed"), ("sa + conv", "")]
    assert [box.name for box in sort] == [box.name for box in reverse]
    lines = drawn(kind="line", value="length", x="epoch", series="mixer", panels="task", select={"filter": 8})
    assert [line.number for line in lines.panels[0].content.lines] == [0, 1, 2]
    assert [line.number for line in lines.panels[1].content.lines] == [0, 2]


def test_a_figure_of_final_values_needs_no_others(study, frames, golden):
    spec = figure(kind="heat", value="loss", x="filter", y="mixer", select={"task": "sort"})
    assert build_curve(study, spec, frames[0]) == build_curve(study, spec, *frames)
    learning = figure(
        kind="line",
        value="length",
        x="epoch",
        select={"task": "sort", "filter": 8, "mixer": "sa"},
    )
    with golden.raises(ValueError):
        build_curve(study, learning, frames[0])


def test_values_beyond_the_whiskers_are_kept(study, frames):
    outcomes, metrics = frames
    far = metrics.with_columns(
        value=pl.when(pl.col("name") == "memory_change[10]").then(9.0).otherwise(pl.col("value"))
    )
    spec = figure(kind="box", value="memory_change", x="mixer", select={"task": "sort", "filter": 8})
    box = only(build_curve(study, spec, outcomes, far)).boxes[0]
    assert (box.whiskers, box.values) == ((0.0, 0.9), (9.0, 9.0, 9.0))


def test_a_heat_map_has_the_mean_of_every_row_and_column(drawn):
    content = only(drawn(kind="heat", value="max_length", x="filter", y="mixer", select={"task": "reverse"}))
    assert content.rows == ("sa", "conv", "sa + conv")
    assert content.columns == ("8", "80", "800")
    assert content.texts == (("11.0", "12.0", "12.9"), ("failed", "22.0", "23.0"), ("31.0", "32.0", "33.0"))
    assert content.ends == ((11.0, "11.0"), (33.0, "33.0"))


def test_a_heat_map_of_two_indices_has_them_in_the_order_of_numbers(drawn, golden):
    made = drawn(
        kind="heat",
        value="attention",
        y="index",
        x="index2",
        panels="mixer",
        select={"task": "sort", "filter": 8},
    )
    assert [panel.title for panel in made.panels] == ["sa", "conv", "sa + conv"]
    content = made.panels[0].content
    assert content.rows == ("0", "1", "2"), "seeds have other symbols"
    assert content.columns == ("40", "41", "42")
    assert [panel.content.pairs for panel in made.panels] == [(1,)] * 3
    golden(made.notes[-2])
    golden(made.notes[-1])
    assert content.values == ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    golden(made.caption)


def test_a_front_has_the_cells_that_no_other_surpasses(drawn):
    made = drawn(kind="pareto", value="loss", x="parameters", series="mixer", select={"task": "sort"})
    content = only(made)
    assert [line.name for line in content.lines] == ["sa", "conv", "sa + conv"]
    assert [(point.x, point.y) for point in content.front] == [(8000, pytest.approx(1.1))]
    longest = only(drawn(kind="pareto", value="max_length", x="parameters", select={"task": "sort"}))
    assert [point.y for point in longest.front] == [31, 32, 33]
    assert [line.name for line in longest.lines][:2] == ["sa, filter 8", "sa, filter 80"]
    assert longest.steps == "post"


def test_a_cost_that_differs_by_seed_is_averaged_like_the_result(study, frames, golden):
    outcomes, metrics = frames
    timed = outcomes.with_columns(seconds=60.0 + pl.col("seed"))
    spec = figure(kind="pareto", value="loss", x="seconds", select={"task": "sort", "filter": 8})
    made = build_curve(study, spec, timed, metrics)
    assert [(line.name, line.points[0].x, line.points[0].n) for line in only(made).lines] == [
        ("sa", 61, 3),
        ("conv", 61, 3),
        ("sa + conv", 61, 3),
    ]
    golden(made.notes)


def test_a_second_index_that_is_not_drawn_is_averaged_within_each_trial(drawn):
    made = drawn(
        kind="line", value="attention", x="index", series="mixer", select={"task": "sort", "filter": 8}
    )
    points = only(made).lines[0].points
    assert [(point.x, point.y, point.n) for point in points] == [
        (place, pytest.approx(1 / 3), 3) for place in range(3)
    ]


def test_a_trial_counts_in_every_cell_that_has_its_settings(tmp_path):
    twice = load_study(STUDY_TEXT.replace('"sa", "conv(k=20)", "sa + conv(k=20)"', '"sa", "sa(heads=8)"'))
    found = Store(tmp_path)
    for trial in twice.trials:
        found.write(*make_rows(trial, "done"))
    select = {"task": "sort", "filter": 8}
    made = make_curve(
        twice, (found.trials(), found.metrics()), kind="bar", value="max_length", x="mixer", select=select
    )
    assert [(bar.name, bar.value) for bar in only(made).bars] == [("sa", 11), ("sa(heads=8)", 11)]
    assert made.provenance.startswith("3 trials")


def test_many_lines_are_drawn_in_panels_with_the_others_in_the_background(tmp_path, golden):
    many = load_study(STUDY_TEXT.replace("seed = [0, 1, 2]", "seed = [0, 1, 2, 3, 4, 5]"))
    found = make_store(many, tmp_path)
    where = {"task": "sort", "mixer": "sa"}
    frames = found.trials(), found.metrics()
    made = make_curve(
        many, frames, kind="line", value="loss", x="filter", series="seed", select=where, accent=0
    )
    assert [panel.title for panel in made.panels] == [f"seed {seed}" for seed in range(6)]
    second = made.panels[1].content
    assert [line.name for line in second.lines] == ["seed 1"]
    assert [line.name for line in second.context if line.accent] == ["seed 0"]
    golden(made.notes)


def test_an_empty_store_gives_a_figure_that_says_so(study, frames, golden):
    outcomes, metrics = frames
    spec = figure(kind="bar", value="max_length", x="mixer", select={"task": "sort", "filter": 8})
    made = build_curve(study, spec, outcomes.clear(), metrics.clear())
    assert [bar.text for bar in only(made).bars] == ["not run"] * 3
    golden(made.notes)


def test_the_order_of_the_store_changes_nothing(study, frames):
    outcomes, metrics = frames
    spec = figure(
        kind="line",
        value="length",
        x="epoch",
        series="mixer",
        select={"task": "sort", "filter": 8},
    )
    assert build_curve(study, spec, outcomes, metrics) == build_curve(
        study, spec, outcomes.reverse(), metrics.reverse()
    )


def test_a_specification_that_does_not_fit_is_reported_with_every_fault(study, frames):
    spec = figure(kind="line", value="los", x="mixers", series="task")
    with pytest.raises(CurveError) as caught:
        build_curve(study, spec, *frames)
    assert str(caught.value) == (
        "curve each: x: unknown factor 'mixers'; nearest: mixer\n"
        "curve each: value: unknown metric 'los'; nearest: loss"
    )


def test_two_factors_make_rows_and_columns_of_panels(drawn):
    made = drawn(kind="line", value="max_length", x="filter", panels="mixer", rows="task")
    assert made.columns == 3
    assert [(panel.row, panel.title) for panel in made.panels[:4]] == [
        ("sort", "sa"),
        ("sort", "conv"),
        ("sort", "sa + conv"),
        ("reverse", "sa"),
    ]
    one = drawn(
        kind="line", value="max_length", x="filter", select={"mixer": "conv(k=20)", "task": "reverse"}
    )
    assert made.panels[4].content == one.panels[0].content


def test_rows_of_panels_have_columns_that_fit(study, golden):
    spec = figure(kind="line", value="loss", x="filter", rows="task", series="mixer")
    with golden.raises(CurveError):
        build_curve(study, spec, pl.DataFrame())
