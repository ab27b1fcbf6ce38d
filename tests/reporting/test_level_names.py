"""Levels are displayed by their names, for example a fragment without its braces."""

import csv
import json
from datetime import UTC, datetime

import polars as pl
import pytest

from activemem import load_study
from activemem.reporting.claims.check import check_claims
from activemem.reporting.kinds import build_curve, build_table
from activemem.reporting.subject import study_levels
from activemem.reporting.tables.render import render
from activemem.reporting.tables.tally import tally_trials
from activemem.studies.presentation.figure_keys import LineFigure
from activemem.studies.presentation.table_keys import CellsTable
from activemem.studies.schema.factors import level_name, level_names, short_level_names

from ..studies.resolve.test_fragments import TEXT

CLAIMS = """
[[claim]]
name = "both is better"
holds = "max_length[mixer={both}, k=3] > max_length[mixer=sa, k=3]"
"""
SPEC = {"name": "t", "rows": "mixer", "columns": "k", "value": "max_length"}


@pytest.fixture
def study():
    return load_study(TEXT + CLAIMS)


def outcomes(study):
    """Return an outcome for each trial; those with the fragment reach greater lengths."""
    when = datetime(2026, 11, 28, tzinfo=UTC)
    rows = [
        {
            "trial": trial.id,
            "study": study.name,
            "seed": trial.settings.seed,
            "recipe": trial.settings.model.recipe,
            "task": trial.settings.task.name,
            "status": "done",
            "reason": None,
            "metrics": [{"name": "max_length", "value": 9.0 if trial.levels["mixer"] == "sa" else 20.0}],
            "parameters": 1,
            "flops": 1.0,
            "seconds": 1.0,
            "peak_mib": 1.0,
            "factors": json.dumps(dict(trial.levels)),
            "version": "0.1.0",
            "commit": None,
            "torch_version": None,
            "cuda_version": None,
            "device": "none",
            "finished": when,
        }
        for trial in {trial.id: trial for trial in study.trials}.values()
    ]
    return pl.DataFrame(rows, schema_overrides={"reason": pl.String, "commit": pl.String})


@pytest.mark.parametrize(
    ("level", "name"),
    [
        ("{all_attn}", "all_attn"),
        ("{ all_attn }", "all_attn"),
        ("sa + {local}", "sa + local"),
        ("seq2seq(lstm, lstm, attention=luong)", "seq2seq(lstm, lstm, attention=luong)"),
        (3, "3"),
        (True, "true"),
    ],
)
def test_a_hole_is_called_by_its_name(level, name):
    assert level_name(level) == name


def test_levels_that_would_be_called_alike_keep_their_braces():
    assert level_names(["{conv}", "conv", "{sa}"]) == ("{conv}", "conv", "sa")
    assert short_level_names(["{conv}", "conv(k=3)"]) == ("conv", "conv(k=3)")


def test_rows_and_columns_of_a_table_are_called_so(study):
    made = build_table(study, CellsTable(**SPEC), outcomes(study))
    assert made.rows == ("sa", "both")
    assert [row["row"] for row in csv.DictReader(render(made, "csv").splitlines())] == [
        "sa",
        "sa",
        "both",
        "both",
    ]
    turned = build_table(study, CellsTable(**SPEC | {"rows": "k", "columns": "mixer"}), outcomes(study))
    assert turned.columns == ("sa", "both")
    assert [key.level for key in turned.keys if key] == ["sa", "both"]


def test_a_caption_and_a_footnote_call_them_so(study):
    made = build_table(study, CellsTable(**SPEC | {"baseline": "{both}"}), outcomes(study))
    assert any(line.endswith("difference from both.") for line in made.sentences)
    picked = CellsTable(**SPEC | {"rows": "k", "columns": None, "over": "mixer", "pick_by": "max_length"})
    assert [note.text for note in build_table(study, picked, outcomes(study)).footnotes] == ["mixer both"]


def test_a_selection_is_written_as_the_study_spells_levels(study):
    only = build_table(study, CellsTable(**SPEC | {"select": {"mixer": "{both}"}}), outcomes(study))
    assert only.rows == ("both",)


def test_a_figure_and_a_claim_call_them_so(study):
    spec = LineFigure(name="c", kind="line", value="max_length", x="k", series="mixer", accent="{both}")
    drawn = build_curve(study, spec, outcomes(study))
    assert [(line.name, line.accent) for line in drawn.panels[0].content.lines] == [
        ("sa", False),
        ("both", True),
    ]
    (checked,) = check_claims(study, outcomes(study))
    assert [each.label for each in checked.findings] == ["both > sa"]


def test_labels_of_claims_and_stored_levels_stay_as_they_are_spelled(study):
    (checked,) = check_claims(study, outcomes(study))
    assert checked.findings[0].text == "max_length[mixer={both}, k=3] > max_length[mixer=sa, k=3]"
    assert study_levels(study, outcomes(study))["mixer"].unique(maintain_order=True).to_list() == [
        "sa",
        "{both}",
    ]


def test_levels_of_one_name_are_not_taken_for_each_other(study):
    twins = load_study(TEXT.replace('both = "sa + {local}"', 'sa = "sa + {local}"').replace("{both}", "{sa}"))
    spec = CellsTable(name="t", rows="k", value="max_length", over=["mixer"], pick_by="max_length")
    found = tally_trials(spec, twins, twins.trials, outcomes(twins))
    assert [tally.label for tally in found["5", "", "max_length"]] == ["mixer {sa}"]
    assert build_table(twins, CellsTable(**SPEC), outcomes(twins)).rows == ("sa", "{sa}")
