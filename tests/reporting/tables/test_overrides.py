"""A table of a study with overrides names them."""

import pytest

from activemem import StudyError, load_study
from activemem.reporting.kinds import build_curve, build_table
from activemem.storage import Store
from activemem.studies import find_study_file


def test_a_table_names_the_settings_that_are_not_the_files(tmp_path):
    outcomes = Store(tmp_path).trials()
    as_written = load_study("algorithmic")
    assert "Other than" not in "".join(build_table(as_written, as_written.tables[0], outcomes).sentences)
    changed = load_study("algorithmic", ["train.epochs=2", "train.batch_size=8"])
    caption = build_table(changed, changed.tables[0], outcomes).sentences
    assert caption[1].endswith("file: train.epochs=2, train.batch_size=8.")


def test_a_table_of_removed_levels_is_empty_and_no_fault(tmp_path):
    store = Store(tmp_path)
    overrides = [
        'factors.pool=["mean_pool"]',
        'factors.task=["recall_multiplication"]',
        "factors.length=[50]",
    ]
    study = load_study("feedforward-attention", overrides)
    assert len(study.trials) == 12
    addition, multiplication = (build_table(study, spec, store.trials()) for spec in study.tables)
    assert [addition.provenance, multiplication.provenance] == ["0 trials", "0 of 12 trials"]
    (spec,) = study.curves
    assert build_curve(study, spec, store.trials(), store.metrics()).notes == (
        "Nothing to draw: no trial is done.",
    )


def test_a_factor_that_no_override_changed_is_held_to_its_levels():
    text = (
        find_study_file("feedforward-attention")
        .read_text(encoding="utf-8")
        .replace("length = 1000", "length = 1001")
    )
    with pytest.raises(StudyError, match=r"unknown level 1001 of length; nearest: 100$"):
        load_study(text, ["train.epochs=2", 'factors.pool=["mean_pool"]'])


def test_no_baseline_that_an_override_took_away_is_a_fault(tmp_path):
    text = (
        find_study_file("quickstart")
        .read_text(encoding="utf-8")
        .replace(
            'rows = "mixer"\n',
            'rows = "mixer"\nbaseline = "conv(k=16)"\n',
        )
    )
    whole, less = load_study(text), load_study(text, ['factors.mixer=["sa(heads=4, head_width=16)"]'])
    found = [build_table(study, study.tables[0], Store(tmp_path).trials()) for study in (whole, less)]
    assert [len(each.rows) for each in found] == [3, 1]
