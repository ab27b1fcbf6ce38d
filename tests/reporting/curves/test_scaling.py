"""Figures of power laws: geometric means of cells, a law for each series, values without logarithm."""

import math
import re
from dataclasses import replace

import polars as pl
import pytest
from scipy.stats import t

from activemem import StudyError, load_study
from activemem.reporting.curves import build_curve
from activemem.reporting.tables import build_table
from activemem.storage import trial_frame

from ...study_texts import study_text
from ..conftest import made_row

FACTORS = {"mixer": ["sa", "conv(k=9)"], "filter": [8, 16, 32, 64], "task": ["sort"], "seed": [0, 1]}
SCALING = {"name": "it", "kind": "scaling", "value": "loss", "x": "parameters", "series": "mixer"}


def study(table=(), **changes):
    curve = {key: value for key, value in (SCALING | changes).items() if value is not None}
    model = {"recipe": "2 * ({mixer} >> ff({filter}))"}
    return load_study(study_text(model=model, factors=FACTORS, curve=[curve], table=table))


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
    assert second.law.exponent == pytest.approx(-0.5)
    # nothing is left over, but the mean of two seeds at ± log 1.1 has that standard deviation
    assert second.law.half_width == pytest.approx(
        t.ppf(0.975, 2) * math.log(1.1) / (math.sqrt(5) * math.log(2))
    )
    assert first.law.exponent < -0.5 < first.law.exponent + first.law.half_width
    assert all(point.low < point.y < point.high for point in first.law.line)
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
    golden(" ".join(build_table(studied, studied.tables[0], outcomes).caption))


def test_a_law_is_continued_to_the_cell_held_out_with_the_interval_of_the_table():
    keys = {key: value for key, value in SCALING.items() if key != "value"}
    laws = [{**keys, "name": "laws", "value": "loss", "held_out": 1}]
    studied = study(held_out=1, table=laws)
    curve = drawn(studied)
    table = build_table(studied, studied.tables[0], losses(studied))
    for series, row in zip(curve.panels[0].content.series, table.cells, strict=True):
        exponent, _, predicted, measured = (cell.estimate.value for cell in row)
        assert [point.x for point in series.points] == pytest.approx([80, 160, 320])
        (held_out,) = series.held_out
        assert (held_out.x, held_out.y) == (pytest.approx(640), measured)
        assert series.law.exponent == exponent
        assert (series.law.line[-1].x, series.law.predicted[0].x) == pytest.approx((320, 320))
        last, foretold = series.law.predicted[-1], row[2].estimate
        assert (last.x, last.y) == pytest.approx((640, predicted))
        assert (last.low, last.high) == (
            (None, None) if foretold.low is None else pytest.approx((foretold.low, foretold.high))
        )
    assert any(re.search("excluded from .* 95 % interval", note) for note in curve.notes)
    assert curve.render("svg") != drawn(study()).render("svg")


def test_a_series_with_too_few_cells_for_a_law_holds_none_out():
    (first, _) = drawn(study(held_out=3)).panels[0].content.series
    assert (first.law, len(first.points), first.held_out) == (None, 4, ())


def test_one_law_goes_through_all_cells_without_series():
    (series,) = drawn(study(series=None)).panels[0].content.series
    assert (series.name, len(series.points)) == ("", 8)


def test_values_without_a_logarithm_are_reported(golden):
    curve = drawn(study(), zero={0, 1})
    assert len(curve.panels[0].content.series[0].points) == 3
    assert any(note.startswith("Without a logarithm: 2 ") for note in curve.notes)
    golden(drawn(study(), zero=range(16)).notes[0])


@pytest.mark.parametrize(
    "changes",
    [
        {"x": "parameter"},
        {"x": "loss"},
        {"series": "mixers"},
        {"accent": "ff"},
        {"series": None, "accent": "sa"},
    ],
    ids=str,
)
def test_settings_that_do_not_fit_are_reported(changes, golden):
    with golden.raises(StudyError):
        study(**changes)
