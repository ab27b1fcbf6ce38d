"""Scaling laws over a ladder: table, figure, and a claim tested on the next size."""

import math
from dataclasses import replace

import pytest

from activemem import StudyError, load_study
from activemem.reporting.claims.check import check_claims
from activemem.reporting.claims.terminal import measured_sentences
from activemem.reporting.kinds import build_curve, build_table
from activemem.storage import Store
from activemem.studies.resolve.costs import model_cost

from ..conftest import made_row

TEXT = """
[study]
name = "laws"
title = "Laws"

[model]
recipe = "2 * {mixer}"
d_model = "{width}"

[ladder]
sizes = { width = [8, 16, 24, 32, 48, 64] }
tokens_per_parameter = 1

[task]
name = "parity"
test_lengths = [40]

[train]
optimizer = { name = "adam", lr = "{lr}" }
batch_size = 8
epochs = 1

[factors]
mixer = ["lstm", "gru"]
lr = [0.001, 0.01]
seed = [0, 1]

[[table]]
name = "laws"
kind = "scaling"
value = "test_loss"
x = "parameters"
series = "mixer"
over = "lr"
pick_by = "test_loss"
offset = true
held_out = 1

[[curve]]
name = "laws"
kind = "scaling"
value = "test_loss"
x = "parameters"
series = "mixer"
over = "lr"
pick_by = "test_loss"
offset = true

[[claim]]
name = "gru follows its law"
holds = \"\"\"
min(test_loss[mixer=gru, width=64, lr=r] for r in lr)
    within 0.05 of law(min(test_loss[mixer=gru, width=64, lr=r] for r in lr))\"\"\"

[[claim]]
name = "lstm does, too"
holds = \"\"\"
test_loss[mixer=lstm, width=64, lr=0.01]
    within 0.05 of law(test_loss[mixer=lstm, width=64, lr=0.01])\"\"\"
"""
OFFSET = 0.5


def loss(trial):
    """Return a power law for gru and one with an offset for lstm; another rate is worse, seeds vary."""
    size = model_cost("parameters", trial.settings)
    law = 40 * size**-0.5 if trial.levels["mixer"] == "gru" else OFFSET + 400 * size**-0.8
    return law * (1.5 if trial.levels["lr"] == 0.001 else 1.0) * math.exp(0.001 * trial.levels["seed"])


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    study, store = load_study(TEXT), Store(tmp_path_factory.mktemp("laws"))
    for number, trial in enumerate(study.trials):
        row = made_row(trial, {"test_loss": loss(trial)}, number)
        store.write(replace(row, parameters=int(model_cost("parameters", trial.settings))), [])
    return study, store.trials()


def test_a_table_of_laws_has_the_known_exponents_and_predicts_the_size_held_out(found):
    table = build_table(found[0], found[0].tables[0], found[1])
    assert table.rows == ("lstm", "gru")
    assert table.columns == ("exponent", "offset", "a", "cells", "predicted", "measured")
    lstm, gru = table.cells
    assert lstm[0].estimate.value == pytest.approx(-0.8, abs=0.01)
    assert lstm[1].estimate.value == pytest.approx(OFFSET, abs=0.01)
    assert gru[0].estimate.value == pytest.approx(-0.5, abs=0.01)
    assert [row[3].text for row in table.cells] == ["5", "5"]
    for row in table.cells:
        assert row[4].estimate.value == pytest.approx(row[5].estimate.value, rel=0.01)


def test_a_figure_draws_laws_with_what_no_size_falls_below(found):
    content = build_curve(found[0], found[0].curves[0], found[1]).panels[0].content
    assert [len(series.points) for series in content.series] == [6, 6]
    lstm = content.series[0]
    assert float(lstm.exponent.split()[1].replace("−", "-")) == pytest.approx(-0.8, abs=0.01)
    assert min(point.y for point in lstm.line) > OFFSET


def test_a_claim_holds_an_extrapolation_against_the_next_size(found):
    kept, strayed = check_claims(found[0], found[1], None)
    assert kept.verdict.value == "confirmed"
    assert strayed.verdict.value == "refuted"
    (said,) = (each for each in measured_sentences(found[0]) if each.startswith("law(…)"))
    assert "not the error of the law" in said


def test_a_law_needs_a_ladder_and_two_smaller_sizes():
    def fault(text):
        with pytest.raises(StudyError) as caught:
            load_study(text)
        return caught.value.faults[-1].message

    assert "2 smaller sizes" in fault(TEXT.replace("width=64", "width=16"))
    plain = TEXT.replace(
        "[ladder]\nsizes = { width = [8, 16, 24, 32, 48, 64] }\ntokens_per_parameter = 1\n", ""
    )
    plain = plain.replace("epochs = 1", "epochs = 1\nsteps_per_epoch = 1").replace(
        "mixer = [", "width = [8, 64]\nmixer = ["
    )
    assert "of a [ladder], but" in fault(plain)
