"""From a study file to trials: the full grid in file order, filled holes, paired seeds."""

from pathlib import Path

import pytest

from activemem import StudyError, load_study, open_study
from activemem.studies import find_study_file

from ..study_texts import replaced, study_text

TEXT = study_text(
    model={"recipe": "2 * ({mixer} >> ff({width}))", "d_model": "{width}", "norm": "{norm}"},
    train={"steps_per_epoch": 3},
    factors={
        "task": ["copy", "reverse"],
        "seed": [3, 5],
        "width": [8, 16],
        "norm": ["post"],
        "mixer": ["conv(k=3)", "sa + conv(k=3)"],
    },
)


def test_the_grid_is_full_and_in_the_order_of_the_file():
    trials = load_study(TEXT).trials
    assert [tuple(trial.levels.values()) for trial in trials] == [
        (task, seed, width, "post", mixer)
        for task in ("copy", "reverse")
        for seed in (3, 5)
        for width in (8, 16)
        for mixer in ("conv(k=3)", "sa + conv(k=3)")
    ]
    assert list(trials[0].levels) == ["task", "seed", "width", "norm", "mixer"]
    assert len({trial.id for trial in trials}) == 16
    assert {trial.study for trial in trials} == {"tiny"}


def test_holes_are_filled_with_levels_of_their_own_type():
    last = load_study(TEXT).trials[-1].settings
    assert last.model.recipe == "2 * (sa + conv(k=3) >> ff(16))"
    assert (last.model.d_model, last.model.norm, last.task.name, last.seed) == (16, "post", "reverse", 5)


def test_seeds_are_paired_across_cells():
    seeds = {}
    for trial in load_study(TEXT).trials:
        cell = tuple(level for name, level in trial.levels.items() if name != "seed")
        seeds.setdefault(cell, []).append(trial.settings.seed)
    assert list(seeds.values()) == [[3, 5]] * 8


def test_a_study_without_seeds_has_seed_zero():
    study = load_study(replaced(TEXT, ("seed = [3, 5]\n", "")))
    assert study.factors["seed"] == (0,)
    assert [trial.settings.seed for trial in study.trials] == [0] * 8


def test_a_study_without_factors_is_one_trial():
    text = TEXT[: TEXT.index("[factors]")]
    for name, level in (("mixer", "sa"), ("width", "8"), ("norm", "pre"), ("task", "sort")):
        text = text.replace('"{width}"', "8").replace(f"{{{name}}}", level)
    (trial,) = load_study(text).trials
    assert trial.levels == {"seed": 0}


def test_identical_trials_appear_once():
    twins = '["sa + conv(k=3)", "conv(k=3, act=relu) + sa", "conv(k=3)"]'
    study = load_study(replaced(TEXT, ('["conv(k=3)", "sa + conv(k=3)"]', twins)))
    assert len(study.trials) == 2 * 2 * 2 * 2
    assert {trial.levels["mixer"] for trial in study.trials} == {"sa + conv(k=3)", "conv(k=3)"}


def test_a_level_may_have_holes_of_its_own():
    study = load_study(
        replaced(TEXT, ('["conv(k=3)", "sa + conv(k=3)"]', '["sa", "conv(k={k})"]\nk = [3, 5]'))
    )
    recipes = [trial.settings.model.recipe for trial in study.trials[:4]]
    assert recipes[:3] == ["2 * (sa >> ff(8))", "2 * (conv(k=3) >> ff(8))", "2 * (conv(k=5) >> ff(8))"]
    assert len(study.trials) == 2 * 2 * 2 * 3  # k does not matter to sa


def test_a_hole_may_stand_for_a_word_or_a_part_of_a_text():
    text = replaced(
        TEXT,
        ('["conv(k=3)", "sa + conv(k=3)"]', '["conv(k=3, act={act})"]\nact = ["gelu", "tanh"]'),
        ('name = "{task}"', 'name = "{task}ort"'),
        ('["copy", "reverse"]', '["s"]'),
    )
    first = load_study(text).trials[0].settings
    assert (first.model.recipe, first.task.name) == ("2 * (conv(k=3, act=gelu) >> ff(8))", "sort")


def test_a_level_that_is_a_sum_binds_as_one_part():
    text = replaced(TEXT, ("2 * ({mixer} >> ff({width}))", "2 * {mixer} >> ff({width})"))
    assert load_study(text).trials[1].settings.model.recipe == "2 * (sa + conv(k=3)) >> ff(8)"


def test_overrides_come_before_everything_else():
    overrides = (
        "train.epochs=7",
        "train.optimizer.name=adamw",
        "train.optimizer.betas=[0.9, 0.98]",
        'factors.mixer=["sa"]',
        "model.recipe=2 * ({mixer} >> ff({width})) >> sa",
        "train.schedule = { name = 'inverse_sqrt', warmup = 4 }",
    )
    study = load_study(TEXT, overrides)
    settings = study.trials[0].settings
    assert settings.train.epochs == 7
    assert settings.train.optimizer.name == "adamw"
    assert settings.train.optimizer.betas == (0.9, 0.98)
    assert settings.train.schedule.name == "inverse_sqrt"
    assert settings.model.recipe == "2 * (sa >> ff(8)) >> sa"
    assert (study.document.overrides, study.document.text, len(study.trials)) == (overrides, TEXT, 8)


def test_a_study_knows_what_it_was_read_from(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_bytes(TEXT.replace("\n", "\r\n").encode())
    study = load_study(path)
    assert (study.document.path, study.name, study.title, study.paper) == (path, "tiny", "A tiny study", None)
    assert study.trials == load_study(TEXT).trials
    assert load_study(str(path)).trials == study.trials


def test_a_grid_that_is_too_large_is_refused_before_it_is_made(golden):
    levels = ", ".join(map(str, range(20_000)))
    with golden.raises(StudyError):
        load_study(replaced(TEXT, ("[3, 5]", f"[{levels}]")))


def test_the_first_paper_s_table_is_a_study_of_144_trials():
    study = load_study("algorithmic")
    assert study.document.path == find_study_file("algorithmic")
    assert [len(levels) for levels in study.factors.values()] == [8, 6, 3]
    assert len(study.trials) == 144
    first = study.trials[0]
    assert first.settings.model.recipe == "4 * (cgru(k=20) >> ff(512))"
    assert first.id == "98d17cd27cbe97e8"


def test_a_study_that_is_nowhere_is_an_error_with_the_nearest_name(golden):
    with golden.raises(StudyError):
        find_study_file("algoritmic")


def test_a_file_that_is_nowhere_is_an_error_without_the_names_of_studies(tmp_path, golden):
    for path in (Path("no/such/file.toml"), "no/algoritmic.toml", tmp_path):
        with pytest.raises(StudyError) as caught:
            load_study(path)
        golden([fault.message for fault in caught.value.faults])


@pytest.mark.parametrize("text", ["", " ", "study = { name = 'tiny' }", f"title = {'x' * 300}"], ids=len)
def test_a_text_without_a_line_break_is_told_from_a_name(text, golden):
    with golden.raises(StudyError):
        load_study(text)


def test_a_key_outside_its_table_is_reported_with_the_table_that_has_it(golden):
    with pytest.raises(StudyError) as caught:
        load_study("quickstart", ["epochs=3"])
    golden(caught.value.faults[0].message)


def test_a_file_that_is_nowhere_is_an_error_with_the_nearest_file_next_to_it(tmp_path, golden):
    (tmp_path / "mine.toml").write_text("")
    with pytest.raises(StudyError) as caught:
        load_study(tmp_path / "mien.toml")
    golden(caught.value.faults[0].message)


@pytest.mark.parametrize("name", ["mine.tml", "studies/mine.tml", "mine"])
def test_a_file_whose_suffix_is_misspelt_is_an_error_with_the_file(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    path = Path(name).with_suffix(".toml")
    path.parent.mkdir(exist_ok=True)
    path.write_text("")
    for find in (load_study, open_study):
        with pytest.raises(StudyError) as caught:
            find(name)
        assert f"nearest: {path}" in caught.value.faults[0].message


def test_a_study_that_is_like_none_is_an_error_with_the_command_that_has_all(golden):
    with pytest.raises(StudyError) as caught:
        load_study("quux")
    golden(str(caught.value).splitlines()[-1])
