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


def cells(found):
    return [
        "".join(str(FACTORS[name].index(trial.levels[name])) for name in FACTORS) for trial in found.cells
    ]


def faults(factors=FACTORS, **keys):
    with pytest.raises(StudyError) as caught:
        study(factors, **keys)
    return [fault.message for fault in caught.value.faults]


def test_a_fraction_begins_at_the_baseline_and_names_what_it_cannot_separate(golden):
    found = study(design={"name": "fractional", "resolution": "IV"}, baseline={"p": 0.1})
    assert cells(found) == ["0100", "0111", "0001", "0010", "1101", "1110", "1000", "1011"]
    golden(found.design.alias_words())
    golden(found.design.explain())
    assert len(study(design={"name": "fractional", "resolution": "V"}).cells) == 16
    three = study(design={"name": "fractional", "resolution": "III"}, around="res").design
    golden(three.alias_words()[0])
    assert three.explain().startswith("around each res: 4 of 8 combinations")


def test_screening_takes_the_fewest_runs():
    assert len(study(design="plackett_burman").cells) == 8
    more = {"d": [0.0, 0.2], "e": [0.0, 0.3], "act": ["relu", "gelu"], "k": [3, 5]}
    found = load_study(
        study_text(
            study={"design": "plackett_burman"},
            model={
                **{"recipe": "{mixer} >> conv(k={k}, act={act})", "norm": "{norm}", "dropout": "{p}"},
                **{"tied": "{tied}", "residual": "{res}", "embedding_dropout": "{d}", "input_dropout": "{e}"},
            },
            task={"name": "sort"},
            factors={"mixer": ["sa"], **FACTORS, **more},
        )
    )
    assert len(found.cells) == 12
    assert found.design.alias_words() == []
    assert "(correlation 1/3)" in found.design.explain()


@pytest.mark.parametrize("design", ["random", "latin_hypercube"])
def test_a_sample_of_a_grid_of_a_billion_cells_lists_only_its_own_cells(design):
    kernels = {f"k{number}": list(range(3, 13)) for number in range(9)}
    body = " >> ".join(f"conv(k={{{name}}})" for name in kernels)
    text = study_text(
        study={"design": {"name": design, "cells": 24, "seed": 7}},
        model={"recipe": body},
        task={"name": "sort"},
        factors={**kernels, "seed": [0, 1]},
        table=[{"name": "one", "rows": "k0", "columns": "k1", "value": "loss", "over": [*kernels][2:]}],
    )
    found = load_study(text)
    assert len(found.trials) == 48
    assert found.design.explain().startswith("24 of 1,000,000,000 ")


@pytest.mark.parametrize(
    "keys",
    [
        {"design": "fractional"},
        {"design": {"name": "random", "seed": 3}},
        {"design": {"name": "zip", "cells": 3}},
        {"design": {"kind": "fractional"}},
        {"design": "fractoinal"},
        {"resolution": "V"},
        {"design_seed": 1},
        {"design": {"name": "random", "cells": 17}},
    ],
)
def test_keys_that_do_not_fit_a_design_are_reported(keys, golden):
    (message,) = faults(**keys)
    golden(message)


@pytest.mark.parametrize(
    "design",
    [
        {"design": "plackett_burman"},
        {"design": {"name": "fractional", "resolution": "III"}},
    ],
)
def test_factors_that_do_not_fit_a_design_are_reported(design, golden):
    (message,) = faults({"mixer": ["sa", "gru", "conv(k=3)"]}, **design)
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
