"""Figures of power laws: geometric means of cells, a law for each series, values without logarithm."""

from dataclasses import replace

import polars as pl
import pytest

from activemem.reporting.curves.curve import build_curve
from activemem.storage.rows import trial_frame
from activemem.studies.study import load_study
from activemem.studies.text.errors import StudyError

from ...study_texts import study_text
from ..conftest import made_row

FACTORS = {"mixer": ["sa", "conv(k=9)"], "filter": [8, 16, 32, 64], "task": ["sort"], "seed": [0, 1]}
SCALING = {"name": "it", "kind": "scaling", "value": "loss", "x": "parameters", "series": "mixer"}


def study(**changes):
    curve = {key: value for key, value in (SCALING | changes).items() if value is not None}
    return load_study(
        study_text(model={"recipe": "2 * ({mixer} >> ff({filter}))"}, factors=FACTORS, curve=[curve])
    )


def drawn(studied, zero=()):
    """Return the study's figure of losses that fall with the root of the parameters."""
    frames = []
    for number, trial in enumerate(studied.trials):
        size, seed = 10 * trial.levels["filter"], trial.levels["seed"]
        loss = 0.0 if number in zero else size**-0.5 * (1.1, 1 / 1.1)[seed]
        if trial.levels["mixer"] == "sa":
            loss *= 1.05 if size == 80 else 1
        frames.append(trial_frame(replace(made_row(trial, {"loss": loss}, number), parameters=size)))
    return build_curve(studied, studied.curves[0], pl.concat(frames).sort("trial"))


def test_each_series_has_its_cells_and_its_law():
    curve = drawn(study(accent="sa"))
    first, second = curve.panels[0].content.series
    assert (first.accent, second.accent) == (True, False)
    assert [(point.x, point.n) for point in second.points] == [
        (pytest.approx(x), 2) for x in (80, 160, 320, 640)
    ]
    assert [point.y for point in second.points] == pytest.approx([x**-0.5 for x in (80, 160, 320, 640)])
    assert second.law.exponent == pytest.approx(-0.5)
    assert second.law.half_width is None, "nothing is left over"
    assert first.law.exponent < -0.5 < first.law.exponent + first.law.half_width
    assert all(point.low < point.y < point.high for point in first.law.line)
    assert curve.notes[0] == "Point: geometric mean of 2 seeds; whisker: lowest to highest."


def test_one_law_goes_through_all_cells_without_series():
    (series,) = drawn(study(series=None)).panels[0].content.series
    assert (series.name, len(series.points)) == ("", 8)


def test_values_without_a_logarithm_are_reported():
    curve = drawn(study(), zero={0, 1})
    assert len(curve.panels[0].content.series[0].points) == 3
    assert "Without a logarithm: 2 trials with a number of 0 or less, or without a cost." in curve.notes
    assert drawn(study(), zero=range(16)).notes[0] == "Nothing to draw: no trial has two positive numbers."


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": "parameter"}, "expected a cost or a metric, got 'parameter'; nearest: parameters"),
        ({"x": "loss"}, "expected a metric or a cost other than value, got 'loss'"),
        ({"series": "mixers"}, "unknown factor 'mixers'; nearest: mixer"),
        ({"accent": "ff"}, "unknown level 'ff' of "),
        ({"series": None, "accent": "sa"}, "expected the key series to name the factor of this level"),
    ],
)
def test_settings_that_do_not_fit_are_reported(changes, message):
    with pytest.raises(StudyError) as told:
        study(**changes)
    assert message in str(told.value)
