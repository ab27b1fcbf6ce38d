"""Sources of settings: complete, or the study is rejected."""

import json
import re

import pytest

from activemem import StudyError, load_study
from activemem.studies.schema.source_sheet import Source, SourcedSetting, SourceSheet

STUDY = """
[study]
name = "told"
title = "where each setting comes from"

[model]
recipe = "2 * ({mixer} >> ff(32))"
d_model = "{width}"

[recipes]
narrow = "conv(k=3)"

[task]
name = "reverse"

[train]
optimizer = { name = "adam", lr = 1e-3 }
batch_size = 4
epochs = 2
steps_per_epoch = 3
curriculum = { start = 2 }

[factors]
mixer = ["sa", "{narrow}"]
width = [8, 16]
seed = [0, 1]
"""

SOURCE = """
[source]
model.recipe = "paper: section 2"
recipes = "paper: section 3"
task.name = "paper: section 4"
train.optimizer = "program: train.py"
train.batch_size = "ours: fits the memory"
train.epochs = "paper: section 4"
train.steps_per_epoch = "paper: section 4"
train.curriculum = "paper: section 4"
train.clip_norm = "program: train.py does not clip"
factors.mixer = "paper: Table 1"
factors.width = "paper: Table 1"
factors.seed = "ours: two of three"
"""


def refused(text: str, *overrides: str) -> str:
    with pytest.raises(StudyError) as caught:
        load_study(text, overrides)
    return str(caught.value)


def test_every_setting_has_its_source_and_the_rest_are_defaults():
    sheet = load_study(STUDY + SOURCE).source_sheet
    found = {each.name: each for each in sheet.settings}
    assert sheet.is_given
    assert found["train.optimizer.lr"].source == Source(origin="program", detail="train.py")
    assert found["recipes.narrow"].source == Source(origin="paper", detail="section 3")
    assert found["factors.width"].value == [8, 16]
    assert "model.d_model" not in found, "a hole has the source of what fills it"
    assert sheet.names("ours") == ("train.batch_size", "factors.seed")
    defaults = sheet.names("ours", is_default=True)
    assert {"model.dropout", "train.precision", "train.optimizer.eps", "train.curriculum.grow_at"} <= set(
        defaults
    )
    assert not {"train.optimizer", "train.optimizer.lr", "train.curriculum", "task.name"} & set(defaults)
    clip = found["train.clip_norm"]
    assert (clip.value, clip.is_default, str(clip.source)) == (None, False, "program: train.py does not clip")
    assert sheet.names("program")[-1] == "train.clip_norm"


def test_each_setting_without_a_source_is_a_fault_of_its_own():
    told = refused(STUDY + '[source]\nmodel = "paper: section 2"\ntrain = "paper: section 4"\n')
    assert "study: 5 faults" in told
    for name in ("recipes.narrow", "task.name", "factors.mixer", "factors.width", "factors.seed"):
        assert f"add {name} = " in told


def test_searches_that_are_tried_after_the_training_have_sources_too():
    decoding = STUDY.replace("[study]", "[study]\nkeep_weights = true") + "[decode]\nbeam = [1, 4]\n"
    assert "add decode.beam = " in refused(decoding + SOURCE)
    found = load_study(decoding + SOURCE + 'decode.beam = "ours: few"\n').source_sheet.settings
    sources = {each.name: str(each.source) for each in found if each.name.startswith("decode.")}
    assert sources.pop("decode.beam") == "ours: few"
    assert set(sources.values()) == {"ours: default"}
    assert not [each for each in load_study(STUDY + SOURCE).source_sheet.settings if "decode" in each.name]


def test_a_source_of_nothing_is_a_fault():
    told = refused(STUDY + SOURCE + 'train.optimiser = "paper: section 4"\n')
    assert "unknown setting train.optimiser; nearest: train.optimizer" in told
    told = refused(STUDY + SOURCE + '"train.epochs" = "paper: section 4"\n')
    assert "write train.epochs without quotes" in told


@pytest.mark.parametrize("value", ['"section 3"', '"paper:"', '"papers: section 3"', "3", '["paper: x"]'])
def test_a_source_is_one_of_four_words_and_its_detail(value):
    told = refused(STUDY + SOURCE.replace('"paper: section 2"', value))
    assert re.search("'paper: .*'program: .*'ours: .*'fitted: ", told)


def fitted(detail: str) -> str:
    """Return the text of a study whose optimizer was fitted to some cells."""
    return STUDY + SOURCE.replace('"program: train.py"', f'"fitted: {detail}"')


@pytest.mark.parametrize(
    ("detail", "cells"),
    [
        ("max_length[mixer=sa, width=8], to 7 of Table 4, among 1e-3 and 2e-3", [("sa", 8)]),
        ("max_length[mixer=sa, width=8]", [("sa", 8)]),
        ("max_length[mixer=sa], it's near", [("sa", 8), ("sa", 16)]),
        (
            "loss[mixer=sa, width=8], max_length[mixer={narrow}, width=16], tried",
            [("sa", 8), ("{narrow}", 16)],
        ),
        ("loss, by hand", [("sa", 8), ("sa", 16), ("{narrow}", 8), ("{narrow}", 16)]),
    ],
)
def test_a_fitted_setting_names_the_cells_by_whose_results_it_was_chosen(detail, cells):
    (one,) = load_study(fitted(detail)).fitted
    assert one.name == "train.optimizer"
    assert [(dict(each.cell)["mixer"], dict(each.cell)["width"]) for each in one.cells] == cells


def test_a_fitted_setting_is_counted_and_said_with_those_that_are_not_from_the_paper():
    sheet = load_study(fitted("max_length[mixer=sa, width=8], to 7")).source_sheet
    assert sheet.names("fitted") == ("train.optimizer.name", "train.optimizer.lr")
    assert sheet.summary("it").startswith("4 settings and ")
    assert sheet.summary("it").endswith(" optimizer was fitted to max_length[mixer=sa, width=8], to 7.")


def test_a_fitted_value_of_a_factor_is_fitted_until_an_override_changes_it():
    text = fitted("loss").replace("lr = 1e-3", 'lr = "{lr}"') + 'factors.lr = "paper: Table 1"\n'
    text = text.replace("seed = [0, 1]\n", "seed = [0, 1]\nlr = [1e-3, 2e-3]\n")
    assert load_study(text).source_sheet.names("fitted") == ("train.optimizer.name", "train.optimizer.lr")
    assert load_study(text, ["factors.lr=[1e-2]"]).source_sheet.names("fitted") == ("train.optimizer.name",)
    other = load_study(fitted("loss"), ["train.optimizer.lr=0.1", "train.optimizer.name=adamw"])
    assert not other.fitted
    removed = load_study(fitted("loss[mixer=sa, width=16]"), ["factors.width=[8]"])
    assert len(removed.fitted) == 1, "an override that removes the cell is no fault"


@pytest.mark.parametrize(
    "detail",
    [
        "max_lenght[mixer=sa, width=8], to 7",
        "max_length[mixer=sb, width=8], to 7",
        "max_length[mixr=sa], to 7",
        "max_length[mixer=sa] to 7",
        "max_length[mixer=sa, to 7",
        "7 of Table 4",
    ],
)
def test_a_fitted_setting_of_no_cell_is_a_fault(detail, golden):
    golden(refused(fitted(detail)))


def test_a_search_has_no_cells_to_fit_to():
    search = '[search]\nmetric = "max_length"\ntrials = 2\n[search.space]\n"train.clip_norm" = [0.1, 1.0]\n'
    assert "a search has no cells to which a setting is fitted: write 'ours: " in refused(
        fitted("loss") + search
    )


def test_the_whole_table_must_be_one():
    assert "such as 'paper: " in refused('source = "paper: all"\n' + STUDY)


def test_the_source_of_an_override_is_ours():
    sheet = load_study(
        STUDY + SOURCE, ["train.epochs=1", "train.span_loss=0.5", "factors.seed=[3]"]
    ).source_sheet
    found = {each.name: str(each.source) for each in sheet.settings}
    assert len({found[name] for name in ("train.epochs", "train.span_loss", "factors.seed")}) == 1
    assert found["train.epochs"].startswith("ours: set ")


def test_without_the_table_no_source_is_required_or_shown():
    sheet = load_study(STUDY).source_sheet
    assert not sheet.is_given
    assert {each.source for each in sheet.settings} == {None}
    assert {"model.recipe", "train.optimizer.betas", "factors.seed"} <= {each.name for each in sheet.settings}


def test_a_list_of_tables_is_one_setting_given_or_not():
    groups = '[[train.groups]]\nmatch = "*.norm.*"\nweight_decay = 0.0\n'
    sheets = [load_study(text).source_sheet for text in (STUDY, STUDY + groups)]
    for sheet, value in zip(sheets, ((), [{"match": "*.norm.*", "weight_decay": 0.0}]), strict=True):
        found = {each.name: each for each in sheet.settings if each.name.startswith("train.groups")}
        assert list(found) == ["train.groups"]
        assert (found["train.groups"].value, found["train.groups"].is_default) == (value, not value)


def test_levels_that_are_tables_are_shown_in_full_with_the_defaults_of_each():
    tasks = [
        {"label": "recall", "name": "mqar", "pairs": 3, "dev_examples": 100},
        {"label": "even", "name": "parity", "lengths": [2, 12], "test_lengths": [18]},
    ]
    optimizer = {"label": "a", "name": "adamw", "lr": 0.1, "betas": [0.5, 0.6]}
    text = f"""
[study]
name = "levels"
title = "tables as levels"
[model]
recipe = "conv(k=2) >> ff(8)"
d_model = 8
[task]
name = "{{task}}"
dev_examples = 50
[train]
optimizer = "{{optimizer}}"
epochs = 1
steps_per_epoch = 2
[factors]
task = {_toml(tasks)}
optimizer = {_toml([optimizer, {"name": "adam", "lr": 1e-4}])}
"""
    settings = load_study(text).source_sheet.settings
    found = {each.name: each.value for each in settings}
    assert len(found) == len(settings)
    assert (found["factors.task"], found["factors.optimizer"][0]) == (tasks, optimizer)
    assert found["task.dev_examples[task=even]"] == 50
    assert found["train.optimizer.betas[optimizer=adam]"] == (0.9, 0.999)
    assert (found["task.vocab"], found["train.optimizer.weight_decay"]) == (8192, 0.0)
    given = {"task.dev_examples", "task.lengths", "task.pairs", "train.optimizer.betas", "train.optimizer.lr"}
    assert not given & set(found), "no trial has the default of a key that all levels give"
    changed = load_study(text, [f"factors.task={_toml([{**tasks[0], 'pairs': 4}])}"]).source_sheet
    assert "set for this run" in {each.name: str(each.source) for each in changed.settings}["factors.task"]


def _toml(levels: list[dict[str, object]]) -> str:
    tables = (", ".join(f"{key} = {json.dumps(value)}" for key, value in each.items()) for each in levels)
    return f"[{', '.join(f'{{ {table} }}' for table in tables)}]"


def sheet(*settings: tuple[str, str, bool]) -> SourceSheet:
    return SourceSheet(
        settings=tuple(
            SourcedSetting(name=name, value=1, source=Source(origin=origin, detail="why"), is_default=default)
            for name, origin, default in settings
        ),
        is_given=True,
    )


@pytest.mark.parametrize(
    "settings",
    [
        [("model.d_model", "paper", False), ("train.lr", "program", False), ("a", "ours", True)],
        [("train.epochs", "paper", False)],
        [("train.epochs", "ours", False)],
        [("train.epochs", "ours", False), ("factors.seed", "ours", False), ("b", "ours", True)],
    ],
    ids=str,
)
def test_settings_that_are_neither_the_papers_nor_its_programs_are_counted(settings, golden):
    golden(sheet(*settings).summary("it"))


def test_a_study_without_sources_is_reported_as_such(golden):
    nothing = SourceSheet(settings=(), is_given=False)
    golden(nothing.summary("it"))
