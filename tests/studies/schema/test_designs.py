"""Designs of a study file: their cells, required keys, and errors."""

import pytest

from activemem import StudyError, load_study

from ...study_texts import study_text

FACTORS = {"norm": ["pre", "post"], "p": [0.0, 0.1], "tied": [False, True], "res": [True, False]}


def study(factors=FACTORS, overrides=(), **keys):
    holes = {"norm": "{norm}", "dropout": "{p}", "tied": "{tied}", "residual": "{res}"}
    return load_study(
        study_text(
            study=keys, model=holes, task={"name": "sort"}, factors={"mixer": ["sa"], **FACTORS, **factors}
        ),
        overrides,
    )


def faults(factors=FACTORS, **keys):
    with pytest.raises(StudyError) as caught:
        study(factors, **keys)
    return [fault.message for fault in caught.value.faults]


@pytest.mark.parametrize(
    "keys",
    [
        {"design": {"name": "zip", "cells": 3}},
        {"design": {"kind": "zip"}},
        {"design": "one_at_a_tiem"},
        {"design": "fractional"},
    ],
)
def test_keys_that_do_not_fit_a_design_are_reported(keys, golden):
    (message,) = faults(**keys)
    golden(message)


def test_combinations_that_a_design_does_not_have_are_no_faults():
    text = study_text(  # addition takes odd lengths
        study={"design": "zip", "around": "mixer"},
        train={"curriculum": {"start": "{start}"}},
        factors={"start": [6, 5], "mixer": ["sa"], "task": ["copy", "addition"]},
    )
    assert len(load_study(text).cells) == 2
    with pytest.raises(StudyError):
        load_study(text, ["study.design=one_at_a_time"])


SIZES = {"size": ["small", "wide", "deep"], "width": [8, 16, 8], "depth": [1, 1, 2]}


def sized(overrides=(), factors=SIZES, tables=(), **keys):
    text = study_text(
        study={"design": "zip", "labels": "size"} | keys,
        model={"recipe": "{depth} * {mixer}", "d_model": "{width}"},
        task={"name": "sort"},
        factors={"mixer": ["sa", "gru"], **factors},
        table=list(tables),
    )
    return load_study(text, overrides)


def test_a_zip_may_repeat_levels_and_name_its_cells_around_other_factors(golden):
    tables = [{"name": "sizes", "rows": "size", "columns": "mixer", "value": "loss"}]
    found = sized(around="mixer", tables=tables)
    assert [tuple(trial.levels.values()) for trial in found.cells] == [
        *(("sa", "small", 8, 1, 0), ("sa", "wide", 16, 1, 0), ("sa", "deep", 8, 2, 0)),
        *(("gru", "small", 8, 1, 0), ("gru", "wide", 16, 1, 0), ("gru", "deep", 8, 2, 0)),
    ]
    assert found.factors["width"] == (8, 16)
    golden(found.design.explain())
    without = sized(around="mixer", labels=None, factors={"width": SIZES["width"], "depth": SIZES["depth"]})
    assert [trial.id for trial in found.trials] == [trial.id for trial in without.trials]


def test_listed_cells_may_have_labels(golden):
    listed = [{"size": name, "width": width, "mixer": "sa"} for name, width in (("small", 8), ("large", 16))]
    text = study_text(
        study={"labels": "size"}, model={"d_model": "{width}"}, task={"name": "sort"}, cells=listed
    )
    assert load_study(text).factors["size"] == ("small", "large")
    with pytest.raises(StudyError) as caught:
        load_study(text.replace("width = 16", "width = 8"))
    golden(caught.value.faults[0].message)


@pytest.mark.parametrize("study", ["ablation-small", "search-mixers-winners", "memory-degradation-sizes"])
def test_a_wrong_design_has_no_faults_of_the_keys_that_depend_on_it(study):
    with pytest.raises(StudyError) as caught:
        load_study(study, ["study.design=3"])
    (fault,) = caught.value.faults
    assert fault.message.startswith("[study] design: ")


def test_wrong_labels_do_not_hide_the_design(golden):
    tables = [{"name": "sizes", "rows": "size", "columns": "mixer", "value": "loss"}]
    with pytest.raises(StudyError) as caught:
        sized(around="mixer", labels=3, tables=tables)
    golden([fault.message for fault in caught.value.faults])


@pytest.mark.parametrize(
    "keys",
    [
        {"labels": []},
        {"labels": ["size", "depth"]},
        {"labels": ["size", "deph"]},
        {"design": "one_at_a_time", "factors": SIZES | {"width": [8, 16, 24], "depth": [1, 2, 3]}},
        {"factors": SIZES | {"width": [8, 8, 8]}},
        {"factors": SIZES | {"width": [8, 16]}},
        {"design": "grid", "around": None, "labels": None},
    ],
)
def test_impossible_labels_and_zips_are_reported(keys, golden):
    with pytest.raises(StudyError) as caught:
        sized(**{"around": "mixer"} | keys)
    golden([fault.message for fault in caught.value.faults])
