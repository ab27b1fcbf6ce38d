"""Effects of factors: estimates and sums of squares by hand, tests, figures, and effects without a number."""

import itertools
import random

import numpy as np
import polars as pl
import pytest

from activemem import StudyError, load_study
from activemem.reporting.curves.draw.figure import draw
from activemem.reporting.kinds import build_curve, build_table
from activemem.storage.rows import trial_frame

from ..reporting.conftest import made_row
from ..study_texts import study_text

pytest.importorskip("statsmodels")

FACTORS = {
    "norm": ["pre", "post"],
    "dropout": [0.0, 0.1],
    "mixer": ["sa", "conv(k=9)", "sa + conv(k=9)"],
    "task": ["sort"],
    "seed": [0, 1, 2],
}
KEYS = {"name": "it", "kind": "effects", "value": "loss"}


def study(role="table", factors=FACTORS, study=None, **keys):
    return load_study(
        study_text(
            study={"plugins": ["effects"], **(study or {})},
            model={"norm": "{norm}", "dropout": "{dropout}"},
            factors=factors,
            **{role: [KEYS | keys]},
        )
    )


def loss(levels):
    post, sa = levels["norm"] == "post", levels["mixer"] == "sa"
    return 2 + 0.3 * post + 0.2 * (post and sa) + 0.5 * levels["seed"]


def outcomes(studied, loss=loss, fails=(), noise=0.01):
    generator, frames = random.Random(0), []
    for number, trial in enumerate(studied.trials):
        value = loss(trial.levels) + generator.gauss(0, noise)
        end = "failed: disk is full" if number in fails else {"loss": value}
        frames.append(trial_frame(made_row(trial, end, number)))
    return pl.concat(frames).sort("trial")


def made(studied, *given, **keys):
    return build_table(studied, studied.tables[0], outcomes(studied, *given, **keys))


def text(table):
    rows = zip(table.rows, table.cells, strict=True)
    return {row: tuple(cell.full_text for cell in cells) for row, cells in rows}


def values(table):
    found = table.frame()
    return {(row["row"], row["column"]): row["value"] for row in found.iter_rows(named=True)}


def test_a_grid_has_the_effects_of_its_factors_and_interactions(golden):
    table = made(study())
    assert table.groups == ("factors",) * 6 + ("interactions",) * 3 + ("besides",) * 2
    rows = text(table)
    assert rows["norm: pre → post"][0].startswith("+0.36")
    assert rows["norm: pre → post"][1] == "< .001"
    assert rows["mixer"][0] == ""
    assert rows["mixer: sa"][0].startswith("+0.06")
    assert rows["norm × mixer"][:2] == ("", "< .001")
    assert sum(value for (_, column), value in values(table).items() if column == "share" and value) == (
        pytest.approx(1)
    )
    golden("\n".join(table.sentences))


def test_a_grid_of_two_by_two_is_as_computed_by_hand():
    cells = {("pre", 0.0): 2, ("pre", 0.1): 4, ("post", 0.0): 5, ("post", 0.1): 11}
    moved = {("pre", 0.0): 0.5, ("pre", 0.1): 0.5, ("post", 0.0): 0.5, ("post", 0.1): 1.0}
    y = [cells[cell] + (2 * seed - 1) * moved[cell] for cell in cells for seed in (0, 1)]
    found = values(
        made(
            study(factors={**FACTORS, "mixer": ["sa"], "seed": [0, 1]}),
            lambda at: (
                cells[at["norm"], at["dropout"]] + (2 * at["seed"] - 1) * moved[at["norm"], at["dropout"]]
            ),
            noise=0.0,
        )
    )
    assert found["norm: pre → post", "effect"] == pytest.approx((5 + 11) / 2 - (2 + 4) / 2)
    assert found["dropout: 0.0 → 0.1", "effect"] == pytest.approx((4 + 11) / 2 - (2 + 5) / 2)
    assert found["norm × dropout", "effect"] == pytest.approx((11 - 5) - (4 - 2))
    total = np.var(y) * 8
    # N effect² / 4, the effect of an interaction halved
    rows = ("norm: pre → post", "dropout: 0.0 → 0.1", "norm × dropout")
    assert [found[row, "share"] for row in rows] == pytest.approx(2 * np.array([5**2, 4**2, 2**2]) / total)
    assert found["seeds", "share"] == pytest.approx(2 * 1.25**2 / total)
    assert found["residual", "share"] == pytest.approx(2 * (3 * 0.125**2 + 0.375**2) / total)


def test_an_unbalanced_grid_is_as_in_another_parametrisation():
    fails = {3, 17, 25}
    studied = study()
    table = values(made(studied, fails=fails))
    rows = [
        (trial.levels, value)
        for number, (trial, value) in enumerate(zip(studied.trials, numbers(studied), strict=True))
        if number not in fails
    ]
    y = np.array([value for _, value in rows])
    columns = {"seed": dummies([levels["seed"] for levels, _ in rows])}
    for name in ("norm", "dropout", "mixer"):
        columns[name] = dummies([str(levels[name]) for levels, _ in rows])
    for one, other in itertools.combinations(("norm", "dropout", "mixer"), 2):
        columns[one, other] = (columns[one][:, :, None] * columns[other][:, None, :]).reshape(len(y), -1)
    ones = np.ones((len(y), 1))

    def left(names):
        model = np.hstack([ones, *(columns[name] for name in names)])
        return float(((y - model @ np.linalg.lstsq(model, y, rcond=None)[0]) ** 2).sum())

    total = ((y - y.mean()) ** 2).sum()
    # the sum of squares of an interaction is what is left over more without it, whatever the parametrisation
    for pair in (("norm", "dropout"), ("norm", "mixer"), ("dropout", "mixer")):
        share = (left([name for name in columns if name != pair]) - left(columns)) / total
        assert table[" × ".join(pair), "share"] == pytest.approx(share, abs=1e-12)


def numbers(studied):
    """Return the losses that `outcomes` stores, in the order of trials."""
    generator = random.Random(0)
    return [loss(trial.levels) + generator.gauss(0, 0.01) for trial in studied.trials]


def dummies(names):
    return np.eye(len(set(names)))[[sorted(set(names)).index(name) for name in names]][:, 1:]


def test_cells_with_unequal_variances_have_intervals_of_their_own():
    def spread(levels):
        return loss(levels) + (levels["mixer"] == "sa") * (-1) ** (levels["seed"] + (levels["norm"] == "pre"))

    cells = dict(zip(*(lambda table: (table.rows, table.cells))(made(study(), spread)), strict=True))
    wide, narrow = (cells[f"mixer: {name}"][0].estimate for name in ("sa", "conv(k=9)"))
    assert wide.high - wide.low > 1.2 * (narrow.high - narrow.low)


def test_cells_that_share_a_trial_are_a_cluster():
    factors = {"mixer": ["sa", "conv(k={k})"], "k": [3, 9], "task": ["sort"], "seed": [0, 1, 2, 3]}
    studied = load_study(study_text(study={"plugins": ["effects"]}, factors=factors, table=[KEYS]))
    assert len({trial.id for trial in studied.cells}) == 12  # of 16: sa does not use k
    noise = [0.1, -0.2, 0.3, 0.0, 0.2, 0.1, -0.1, -0.3, 0.0, 0.4, -0.4, 0.1]
    frames = [
        trial_frame(made_row(trial, {"loss": 2.0 + noise[number]}, number))
        for number, trial in enumerate(studied.trials)
    ]
    table = build_table(studied, studied.tables[0], pl.concat(frames).sort("trial"))
    assert any("11 degrees of freedom, a variance for each trial" in line for line in table.sentences)
    assert all(cell.estimate.low < cell.estimate.high for cell, _, _ in table.cells[:2])


def test_trials_without_a_value_are_reported_and_shares_do_not_add_up():
    table = made(study(), fails={3, 17})
    assert table.remarks[-1].endswith(" 36 trials: 2 failed.")
    assert any("not add up" in sentence for sentence in table.sentences)


def test_one_factor_at_a_time_takes_interactions_to_be_nothing_and_says_so():
    table = made(study(study={"design": "one_at_a_time"}))
    assert "interactions" not in table.groups
    assert "Not separable in these cells and assumed to be zero: 3 interactions." in table.sentences


def test_effects_that_a_missing_level_hides_have_no_number():
    studied = study()
    lost = [at for at, trial in enumerate(studied.trials) if trial.levels["dropout"] == 0.1]
    table = made(studied, fails=lost)
    rows, notes = text(table), [note.text for note in table.footnotes]
    assert rows["dropout: 0.0 → 0.1"] == ("–", "", "")
    assert notes == ["Only one level of dropout has a value."]
    assert rows["norm: pre → post"][0].startswith("+0.3")


def test_confounded_factors_have_no_number():
    studied = study()
    apart = [
        at
        for at, trial in enumerate(studied.trials)
        if (trial.levels["norm"] == "post") != (trial.levels["dropout"] == 0.1)
    ]
    table = made(studied, fails=apart)
    rows = text(table)
    assert rows["norm: pre → post"] == rows["dropout: 0.0 → 0.1"] == ("–", "", "")
    assert [note.text for note in table.footnotes] == [
        "These cells cannot separate it from the other effects."
    ]
    assert rows["mixer: sa"][0].startswith("+0.06")


def test_a_study_without_any_value_has_an_empty_table():
    table = made(study(), fails=range(36))
    assert text(table)["norm: pre → post"] == ("–", "", "")
    assert table.footnotes == ()


def test_without_noise_there_are_no_tests():
    table = made(study(), noise=0.0)
    assert "Without an estimate of the noise there are no intervals and no tests." in table.sentences
    assert text(table)["norm: pre → post"][1] == ""


@pytest.mark.parametrize(
    "keys",
    [{"value": "los"}, {"rows": "norm"}, {"select": {"norm": "pre", "dropout": 0.0, "mixer": "sa"}}],
    ids=str,
)
def test_keys_that_do_not_fit_are_reported(keys, golden):
    with golden.raises(StudyError):
        study(**keys)


def drawn(studied, **keys):
    curve = build_curve(studied, studied.curves[0], outcomes(studied, **keys))
    draw(curve, "svg")  # must not fail
    return curve


def test_a_figure_has_the_mean_at_each_level_of_every_factor():
    curve = drawn(study("curve"))
    rows = curve.panels[0].content.data
    assert [(row["factor"], row["level"]) for row in rows][:4] == [
        *(("norm", "pre"), ("norm", "post")),
        *(("dropout", "0.0"), ("dropout", "0.1")),
    ]
    assert [row["mean"] for row in rows][:2] == pytest.approx([2.5, 2.867], abs=0.02)
    assert all(row["low"] < row["mean"] < row["high"] for row in rows)


@pytest.mark.parametrize(("x", "series"), [("mixer", "norm"), ("norm", "mixer")])
def test_a_figure_of_two_factors_has_the_mean_of_each_pair_of_levels(x, series):
    rows = drawn(study("curve", x=x, series=series)).panels[0].content.data
    means = {(row["norm"], row["mixer"]): row["mean"] for row in rows}
    assert means["post", "sa"] == pytest.approx(3.0, abs=0.02)
    assert means["post", "conv(k=9)"] == pytest.approx(2.8, abs=0.02)
    assert means["pre", "sa"] == pytest.approx(2.5, abs=0.02)


def test_a_figure_of_two_factors_names_both(golden):
    with golden.raises(StudyError):
        study("curve", x="mixer")


def test_an_interaction_that_is_not_estimable_is_zero_and_said_to_be():
    curve = drawn(study("curve", study={"design": "one_at_a_time"}, x="mixer", series="norm"))
    assert any("not estimable" in note for note in curve.notes)
