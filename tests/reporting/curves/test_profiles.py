"""Performance profiles: shares of runs above scores, with bands only if seeds vary."""

import random

import polars as pl
import pytest

from activemem import StudyError, load_study
from activemem.reporting.curves import build_curve
from activemem.reporting.curves.draw import draw
from activemem.storage import trial_frame

from ...study_texts import study_text
from ..conftest import made_row

FACTORS = {"mixer": ["sa", "conv(k=9)"], "task": ["sort", "reverse"], "seed": [0, 1, 2]}
PROFILE = {
    "name": "it",
    "kind": "profile",
    "value": "max_length",
    "series": "mixer",
    "tasks": "task",
    "bounds": {"max_length": [0, 10]},
}


def study(**changes):
    return load_study(study_text(factors=FACTORS, curve=[PROFILE | changes]))


def drawn(studied, fails=lambda levels: False):
    """Return the study's profile, with longer lengths for convolutions."""
    noise, frames = random.Random(0), []
    for number, trial in enumerate(studied.trials):
        length = (2 if trial.levels["mixer"] == "sa" else 5) + noise.random()
        end = "failed: x" if fails(trial.levels) else {"max_length": length}
        frames.append(trial_frame(made_row(trial, end, number)))
    return build_curve(studied, studied.curves[0], pl.concat(frames).sort("trial"))


def test_shares_fall_from_all_to_none_and_the_better_line_is_above():
    curve = drawn(study(accent="sa"))
    low, high = curve.panels[0].content.lines
    assert (low.name, low.accent, high.accent) == ("sa", True, False)
    shares = [point.y for point in low.points]
    assert shares == sorted(shares, reverse=True)
    assert (high.points[0].y, high.points[-1].y) == (1, 0)
    assert all(above.y >= below.y for above, below in zip(high.points, low.points, strict=True))
    known = [point for point in low.points if point.low is not None]
    assert known
    assert all(0 < point.y < 1 and 0 <= point.low < point.high <= 1 for point in known)
    assert [point for point in high.points if point.low is None], "no band where all seeds agree"
    assert curve.notes[0] == "Scores: max_length from 0 to 10 as 0 to 1."
    assert b"<svg" in draw(curve, "svg")


def test_a_method_without_a_task_has_no_line_and_is_reported(golden):
    curve = drawn(study(), fails=lambda levels: (levels["mixer"], levels["task"]) == ("sa", "sort"))
    assert [line.name for line in curve.panels[0].content.lines] == ["conv"]
    golden(curve.notes[2:])
    nothing = drawn(study(), fails=lambda levels: True)
    golden(nothing.notes[0])
    assert b"<svg" in draw(nothing, "svg")


@pytest.mark.parametrize(
    "changes",
    [
        {"series": "mixers"},
        {"accent": "ff"},
        {"tasks": "mixer"},
        {"baseline": "sa"},
    ],
    ids=str,
)
def test_settings_that_do_not_fit_are_reported(changes, golden):
    with golden.raises(StudyError):
        study(**changes)
