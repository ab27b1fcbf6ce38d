"""Figures of a grid's linear model: means at levels and combinations, and their captions."""

import random

import polars as pl
import pytest

from activemem import StudyError, load_study
from activemem.reporting.curves import build_curve
from activemem.storage import trial_frame

from ...study_texts import study_text
from ..conftest import made_row

FACTORS = {"norm": ["pre", "post"], "p": [0.0, 0.1], "mixer": ["sa", "conv(k=9)"], "task": ["sort"]}
EFFECTS = {"name": "it", "kind": "effects", "value": "loss"}
INTERACTION = EFFECTS | {"x": "mixer", "series": "norm"}


def study(curve, **header):
    model = {"norm": "{norm}", "dropout": "{p}"}
    return load_study(
        study_text(study=header, model=model, factors=FACTORS | {"seed": [0, 1, 2]}, curve=[curve])
    )


def drawn(studied, fails=()):
    """Return the study's figure with failed trials, or losses that grow with post and sa."""
    draw, frames = random.Random(0), []
    for number, trial in enumerate(studied.trials):
        post, sa = trial.levels["norm"] == "post", trial.levels["mixer"] == "sa"
        value = 1 + post + 0.5 * (post and sa) + trial.levels["seed"] + draw.gauss(0, 0.01)
        frames.append(
            trial_frame(made_row(trial, "failed: x" if number in fails else {"loss": value}, number))
        )
    return build_curve(studied, studied.curves[0], pl.concat(frames).sort("trial"))


def test_the_means_of_each_factor_are_below_the_description_of_its_effect(golden):
    curve = drawn(study(EFFECTS))
    content = curve.panels[0].content
    assert [factor.name for factor in content.factors] == ["norm", "p", "mixer"]
    norm = content.factors[0]
    assert [mean.value for mean in norm.means] == pytest.approx([2, 3.25], abs=0.02)
    assert all(mean.low < mean.value < mean.high for mean in norm.means)
    assert norm.text.endswith("%, p < .001")
    assert content.center == pytest.approx(2.625, abs=0.02)
    golden(curve.notes[1])


def test_an_interaction_has_a_line_for_each_level_in_whichever_order_factors_are_named():
    lines = drawn(study(INTERACTION)).panels[0].content.lines
    assert [(line.name, [point.x for point in line.points]) for line in lines] == [
        ("pre", [0, 1]),
        ("post", [0, 1]),
    ]
    assert [point.y for point in lines[1].points] == pytest.approx([3.5, 3], abs=0.02)
    turned = drawn(study(INTERACTION | {"x": "norm", "series": "mixer"})).panels[0].content
    assert [point.y for point in turned.lines[0].points] == pytest.approx([2, 3.5], abs=0.02)


def test_a_figure_says_if_its_cells_cannot_estimate_an_interaction():
    curve = drawn(study(INTERACTION, design="one_at_a_time"))
    assert any("not estimable" in note for note in curve.notes)


def test_without_values_there_is_a_figure_that_says_so(golden):
    for spec in (EFFECTS, INTERACTION):
        curve = drawn(study(spec), fails=range(24))
        golden(curve.notes[0])
        assert curve.notes[1].endswith(" 24 trials: 24 failed.")


@pytest.mark.parametrize(
    "curve",
    [
        EFFECTS | {"value": "los"},
        EFFECTS | {"x": "norm"},
        INTERACTION | {"x": "task"},
        INTERACTION | {"series": "mixer"},
        INTERACTION | {"accent": "both"},
        EFFECTS | {"accent": "pre"},
        EFFECTS | {"kind": "effect"},
        INTERACTION | {"kind": "interaction"},
    ],
)
def test_settings_that_do_not_fit_are_reported(curve, golden):
    with golden.raises(StudyError):
        study(curve)
