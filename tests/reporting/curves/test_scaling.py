"""Figures of power laws: geometric means of cells, a law for each series, values without logarithm."""

import math
import re
from dataclasses import replace

import polars as pl
import pytest
from scipy.stats import t

from activemem import StudyError, load_study
from activemem.reporting.kinds import build_curve, build_table
from activemem.storage.rows import trial_frame
from activemem.studies.resolve.costs import model_cost

from ...study_texts import study_text
from ..conftest import made_row

FACTORS = {"mixer": ["sa", "conv(k=9)"], "filter": [8, 16, 32, 64], "task": ["sort"], "seed": [0, 1]}
SCALING = {"name": "it", "kind": "scaling", "value": "loss", "x": "parameters", "series": "mixer"}


def study(table=(), factors=FACTORS, **changes):
    curve = {key: value for key, value in (SCALING | changes).items() if value is not None}
    model = {"recipe": "2 * ({mixer} >> ff({filter}))"}
    return load_study(study_text(model=model, factors=factors, curve=[curve], table=table))


def losses(studied, zero=()):
    """Return outcomes whose losses fall with the root of the parameters."""
    frames = []
    for number, trial in enumerate(studied.trials):
        size, seed = 10 * trial.levels["filter"], trial.levels["seed"]
        loss = 0.0 if number in zero else size**-0.5 * (1.1, 1 / 1.1)[seed]
        if trial.levels["mixer"] == "sa":
            loss *= 1.05 if size == 80 else 1
        frames.append(trial_frame(replace(made_row(trial, {"loss": loss}, number), parameters=size)))
    return pl.concat(frames).sort("trial")


def drawn(studied, zero=()):
    return build_curve(studied, studied.curves[0], losses(studied, zero))


def test_each_series_has_its_cells_and_its_law(golden):
    curve = drawn(study(accent="sa"))
    first, second = curve.panels[0].content.series
    assert (first.accent, second.accent) == (True, False)
    assert [(point.x, point.n) for point in second.points] == [
        (pytest.approx(x), 2) for x in (80, 160, 320, 640)
    ]
    assert [point.y for point in second.points] == pytest.approx([x**-0.5 for x in (80, 160, 320, 640)])
    # nothing is left over, but the mean of two seeds at ± log 1.1 has that standard deviation
    half = t.ppf(0.975, 2) * math.log(1.1) / (math.sqrt(5) * math.log(2))
    assert second.exponent == f"exponent −0.500 ± {half:.3f}"
    exponent, width = map(float, re.findall(r"[\d.]+", first.exponent))
    assert -exponent < -0.5 < width - exponent
    assert all(point.low < point.y < point.high for point in first.line)
    golden(curve.notes[0])


def test_a_law_is_of_the_levels_that_another_metric_picks(golden):
    laws = {
        **{key: value for key, value in SCALING.items() if key != "value"},
        "name": "laws",
        "value": "loss",
    }
    picks = {"over": "mixer", "pick_by": "accuracy"}
    studied = study(series=None, table=[{**laws, "series": None, **picks}], **picks)
    frames = []
    for number, trial in enumerate(studied.trials):
        size, is_better = (
            trial.levels["filter"],
            (trial.levels["mixer"] == "sa") == (trial.levels["filter"] < 20),
        )
        metrics = {"loss": size**-0.5 * (2 if is_better else 1), "accuracy": 0.9 if is_better else 0.8}
        frames.append(trial_frame(replace(made_row(trial, metrics, number), parameters=size)))
    outcomes = pl.concat(frames).sort("trial")
    curve = build_curve(studied, studied.curves[0], outcomes)
    (series,) = curve.panels[0].content.series
    assert [point.y for point in series.points] == pytest.approx([2 * x**-0.5 for x in (8, 16, 32, 64)])
    golden(curve.notes)
    golden(" ".join(build_table(studied, studied.tables[0], outcomes).sentences))


def test_a_law_is_continued_to_the_cell_held_out_with_the_interval_of_the_table():
    keys = {key: value for key, value in SCALING.items() if key != "value"}
    laws = [{**keys, "name": "laws", "value": "loss", "held_out": 1}]
    studied = study(held_out=1, table=laws)
    curve = drawn(studied)
    table = build_table(studied, studied.tables[0], losses(studied))
    for series, row in zip(curve.panels[0].content.series, table.cells, strict=True):
        exponent, a, _, predicted, measured = (cell.estimate.value for cell in row)
        assert [point.x for point in series.points] == pytest.approx([80, 160, 320])
        (held_out,) = series.held_out
        assert (held_out.x, held_out.y) == (pytest.approx(640), measured)
        assert series.line[0].y == pytest.approx(a * 80**exponent)
        assert (series.line[-1].x, series.predicted[0].x) == pytest.approx((320, 320))
        last, foretold = series.predicted[-1], row[3].estimate
        assert (last.x, last.y) == pytest.approx((640, predicted))
        assert (last.low, last.high) == (
            (None, None) if foretold.low is None else pytest.approx((foretold.low, foretold.high))
        )
    assert any(re.search("excluded from .* 95 % interval", note) for note in curve.notes)
    assert curve.render("svg") != drawn(study()).render("svg")


def laws(loss, *, ended=lambda trial: True, baseline=None, **changes):
    """Return a table and a figure of laws. The loss follows from the number of parameters and the trial."""
    keys = SCALING | changes | ({"baseline": baseline} if baseline else {})
    studied = study(table=[keys], factors=FACTORS | {"filter": [64, 256, 1024, 4096]}, **changes)
    rows = []
    for number, trial in enumerate(studied.trials):
        size = int(model_cost("parameters", trial.settings))
        row = replace(
            made_row(trial, {"loss": loss(size, trial)}, number), parameters=size, flops=5e8 + number
        )
        if not ended(trial):
            row = replace(row, status="failed", reason="disk is full", metrics=())
        rows.append(trial_frame(row))
    outcomes = pl.concat(rows).sort("trial")
    return build_table(studied, studied.tables[0], outcomes), build_curve(
        studied, studied.curves[0], outcomes
    )


def test_the_cell_held_out_is_the_largest_planned_one_even_if_it_has_no_result(golden):
    def loss(size, trial):
        return 3 * size**-0.2 * (1.01, 1 / 1.01)[trial.levels["seed"]]

    def is_small_or_conv(trial):
        return trial.levels["filter"] < 4096 or trial.levels["mixer"] != "sa"

    whole, drawn_whole = laws(loss, held_out=1)
    table, curve = laws(loss, held_out=1, ended=is_small_or_conv)
    for row, former in zip(table.cells, whole.cells, strict=True):
        assert row[:4] == former[:4]  # the law of the three smaller cells foretells the same cell
    assert table.cells[1][4] == whole.cells[1][4]
    assert table.cells[0][4].text == "–"
    assert table.cells[0][-1].status == "failed"
    golden([note.text for note in table.footnotes])
    sa, conv = curve.panels[0].content.series
    assert (sa.held_out, len(conv.held_out)) == ((), 1)
    assert sa.predicted == drawn_whole.panels[0].content.series[0].predicted
    golden(curve.notes)


def test_a_largest_cell_that_ends_early_without_a_result_stays_held_out():
    studied = study(x="flops", held_out=1, table=[SCALING | {"x": "flops", "held_out": 1}])
    rows = []
    for number, trial in enumerate(studied.trials):
        size = trial.levels["filter"]
        loss = math.nan if size == 64 and trial.levels["mixer"] == "sa" else size**-0.5
        flops = 1e6 if math.isnan(loss) else 1e9 * size
        rows.append(trial_frame(replace(made_row(trial, {"loss": loss}, number), flops=flops)))
    table = build_table(studied, studied.tables[0], pl.concat(rows))
    sa, conv = table.cells
    assert [row[2].text for row in table.cells] == ["3", "3"], "both laws are fitted to the smaller cells"
    assert (sa[-1].text, conv[-1].text) == ("–", "0.1250")


def test_a_cell_is_not_held_out_if_its_cost_is_unknown_before_training():
    def is_small(trial):
        return trial.levels["filter"] < 4096

    table, curve = laws(lambda size, trial: 3 * size**-0.2, held_out=1, x="seconds", ended=is_small)
    note = "Not held out, since seconds is unknown before training: 2 cells."
    assert note in table.sentences
    assert note in curve.notes
    assert [len(row) for row in table.cells] == [5, 5]
    assert [row[4].text != "–" for row in table.cells] == [True, True]


def test_a_missing_law_or_interval_has_its_reason(golden):
    def loss(size, trial):
        return 3 * size**-0.2

    def notes(**changes):
        (table, curve), said = laws(loss, **changes), []
        for cells in table.cells:
            said.append(
                (cells[0].text, [note.text for note in table.footnotes if note.mark in cells[0].marks])
            )
        return [*said, list(table.sentences), list(curve.notes)]

    golden(notes(held_out=2))
    golden(notes(ended=lambda trial: trial.levels["filter"] == 64))
    golden(notes(x="flops"))


def test_exponents_are_compared_with_that_of_the_baseline(golden):
    exponents = {"sa": -0.2, "conv(k=9)": -0.3}

    def loss(size, trial):
        return 3 * size ** exponents[trial.levels["mixer"]] * (1.01, 1 / 1.01)[trial.levels["seed"]]

    table, _ = laws(loss, baseline="sa")
    assert table.columns[-2:] == ("difference", "p")
    (own, own_p), (difference, p) = (row[-2:] for row in table.cells)
    assert (own.text, own_p.text) == ("–", "–")
    assert difference.estimate.value == pytest.approx(-0.1)
    assert difference.estimate.low < -0.1 < difference.estimate.high < 0
    assert p.p < 0.05
    golden(table.sentences[-1])


def test_a_rising_metric_has_no_law_with_an_offset(golden):
    table, curve = laws(lambda size, trial: size**0.3, offset=True)
    assert [[cell.text for cell in row] for row in table.cells] == [["–", "–", "–", "4"]] * 2
    golden([note.text for note in table.footnotes])
    assert not any(series.line for series in curve.panels[0].content.series)


def test_an_offset_at_its_bound_is_named_and_its_interval_is_possible(golden):
    table, curve = laws(lambda size, trial: 2 - size / 1e6 - 1e-3 * trial.levels["seed"], offset=True)
    for exponent, offset, *_ in table.cells:
        assert exponent.estimate.high < 0
        assert offset.estimate.low == 0
        assert offset.estimate.high < 2.5  # the linearised model would say hundreds
    golden([note.text for note in table.footnotes])
    golden(curve.notes)
    assert curve.render("svg")


def test_a_series_with_too_few_cells_for_a_law_holds_none_out():
    _, curve = laws(lambda size, trial: 1 / size, held_out=2, ended=lambda trial: trial.levels["filter"] > 64)
    first = curve.panels[0].content.series[0]
    assert (first.line, len(first.points), first.held_out) == ((), 3, ())


def test_one_law_goes_through_all_cells_without_series():
    (series,) = drawn(study(series=None)).panels[0].content.series
    assert (series.name, len(series.points)) == ("", 8)


def test_values_without_a_logarithm_are_reported(golden):
    curve = drawn(study(), zero={0, 1})
    assert len(curve.panels[0].content.series[0].points) == 3
    assert any(note.startswith("Without a logarithm: 2 ") for note in curve.notes)
    golden(drawn(study(), zero=range(16)).notes[0])
    studied = study(table=[{**SCALING, "name": "laws", "held_out": 1}])
    largest = [number for number, trial in enumerate(studied.trials) if trial.levels["filter"] == 64]
    made = build_table(studied, studied.tables[0], losses(studied, zero=largest))
    assert [note.text for note in made.footnotes] == ["2 of 2 seeds without a positive loss"]


@pytest.mark.parametrize(
    "changes",
    [
        {"x": "parameter"},
        {"x": "loss"},
        {"series": "mixers"},
        {"accent": "ff"},
        {"series": None, "accent": "sa"},
        {"held_out": 3},
    ],
    ids=str,
)
def test_settings_that_do_not_fit_are_reported(changes, golden):
    with golden.raises(StudyError):
        study(**changes)
