"""[ladder]: coupled sizes, with training length and learning rate by rule."""

import re
import tomllib

import pytest

from activemem import StudyError, load_study
from activemem.reporting.kinds import build_table
from activemem.storage import Store
from activemem.studies import make_plan
from activemem.studies.resolve.costs import analysis

TEXT = """
[study]
name = "sizes"
title = "Two mixers over three sizes"

[model]
recipe = "{depth} * ({mixer} >> ff({filter}))"
d_model = "{width}"

[ladder]
sizes = { width = [16, 32, 48], depth = [2, 2, 3], filter = [64, 128, 192] }
tokens_per_parameter = 5
lr_exponent = -0.5

[task]
name = "word_problem"
lengths = [8, 16]
test_lengths = [16]

[train]
optimizer = { name = "adam", lr = 1e-2 }
batch_size = 32
epochs = 2

[factors]
mixer = ["sa(heads=2, head_width=8)", "lstm"]
seed = [0, 1]

[[table]]
name = "sizes"
rows = "mixer"
columns = "width"
value = "test_loss"
"""


def faults(text):
    with pytest.raises(StudyError) as caught:
        load_study(text)
    return [fault.message.removeprefix("[ladder] ") for fault in caught.value.faults]


def test_every_other_factor_crosses_sizes_that_change_in_step(tmp_path):
    study = load_study(TEXT)
    sizes = [tuple(trial.levels[name] for name in ("width", "depth", "filter")) for trial in study.trials]
    assert sorted(set(sizes)) == [(16, 2, 64), (32, 2, 128), (48, 3, 192)]
    assert len(study.trials) == 12
    assert study.design.ladder == ("width", "depth", "filter")
    table = build_table(study, study.tables[0], Store(tmp_path).trials())
    assert len(table.rows) == 2


def test_a_size_has_the_steps_that_its_parameters_ask_for_and_the_rate_of_its_width():
    for trial in load_study(TEXT).trials:
        train, parameters = trial.settings.train, analysis(trial.settings, 16).parameters
        tokens = train.epochs * train.steps_per_epoch * 32 * 16
        assert tokens == pytest.approx(5 * parameters, abs=32 * 16)
        assert train.optimizer.lr == pytest.approx(1e-2 * (trial.levels["width"] / 16) ** -0.5, rel=1e-5)


def test_without_a_rule_a_rate_can_be_searched_at_each_size():
    text = TEXT.replace("lr_exponent = -0.5\n", "").replace("lr = 1e-2", 'lr = "{lr}"')
    study = load_study(
        text.replace("seed = [0, 1]", "lr = [1e-3, 1e-2]").replace(
            'name = "sizes"\nrows', 'name = "s"\nselect = { lr = 1e-3 }\nrows'
        )
    )
    assert len(study.trials) == 3 * 2 * 2
    assert {trial.settings.train.optimizer.lr for trial in study.trials} == {1e-3, 1e-2}


def test_a_plan_shows_parameters_steps_and_tokens_of_each_size(tmp_path, golden):
    study = load_study(
        TEXT.replace('mixer = ["sa(heads=2, head_width=8)", "lstm"]\n', "")
        .replace("{mixer}", "lstm")
        .replace('rows = "mixer"\ncolumns', "rows")
    )
    text = str(make_plan(study, Store(tmp_path), memory=None))
    table = text[text.index("  ladder ") : text.index("  in all ")]
    golden([line for line in table.splitlines() if line])
    assert [rung.tokens for rung in study.planned_sizes] == [44_032, 169_984, 565_248]
    assert not load_study("quickstart").planned_sizes
    wide = load_study("scaling-small")
    assert max(map(len, str(make_plan(wide, Store(tmp_path), memory=None)).splitlines())) <= 80


def test_a_plan_names_the_mixer_of_each_size_where_arguments_leave_no_room(tmp_path):
    text = TEXT.replace("filter = [64, 128, 192]", "head = [8, 16, 24]").replace('"lstm"', '"gru"')
    text = text.replace("heads=2, head_width=8", "heads=2, head_width={head}, pos=rope")
    text = text.replace(
        'title = "Two', 'match = "flops"\nbaseline = { mixer = "sa", filter = 64 }\ntitle = "Two'
    )
    plan = str(make_plan(load_study(text), Store(tmp_path), memory=None))
    labels = [re.split(r"  +", line.strip())[0] for line in plan.splitlines()[3:10]]
    assert labels == [
        "width, mixer",
        *(f"{width}, {name}" for name in ("sa", "gru") for width in (16, 32, 48)),
    ]


def test_all_faults_of_a_ladder_are_reported_at_once(golden):
    text = TEXT.replace('title = "Two', 'design = "random"\ntitle = "Two').replace(
        "epochs = 2", "epochs = 2\nsteps_per_epoch = 9"
    )
    text = text.replace("[16, 32, 48], depth = [2, 2, 3]", "[32, 16, 48], depth = [2, 2]")
    golden(faults(text.replace("seed = [0, 1]", "depth = [1]")))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("depth = [2, 2, 3]", "depth = 2"),
        ("[16, 32, 48]", '[16, "x", 48]'),
        ("[16, 32, 48]", "[16, -32, 48]"),
        ("_parameter = 5", "_parameter = 1e99"),
        ('d_model = "{width}"', 'd_model = "{width}"\nmup = 16\nembedding = "unit"'),
        ("[study]", '[study]\nablate = "parts"'),
    ],
)
def test_a_fault_of_a_ladder_is_reported_once_and_nothing_that_follows_from_it(old, new, golden):
    golden(faults(TEXT.replace(old, new)))


def test_a_ladder_without_the_study_table_is_checked_with_its_claims(golden):
    claim = '[[claim]]\nname = "ahead"\nholds = "test_loss[mixer=lstm, width=48] < 2"\n'
    golden(faults(TEXT.replace("[study]\n", "") + claim))


def test_levels_that_are_sizes_are_refused_where_the_sizes_stand():
    with pytest.raises(StudyError) as caught:
        load_study(TEXT.replace("[16, 32, 48]", "[16, 32, 99999]"))
    (fault,) = caught.value.faults
    assert fault.line == 1 + TEXT[: TEXT.index("sizes = {")].count("\n")
    assert "[ladder] sizes.width" in fault.message


def test_reading_a_ladder_leaves_the_tables_of_its_file_as_they_are():
    study = load_study(TEXT)
    assert study.document.data == tomllib.loads(TEXT)
    assert (study.header.design.name, study.header.around) == ("zip", ("mixer",))


def test_the_design_of_a_ladder_is_told_by_its_sizes():
    assert load_study(TEXT).design.explain() == "each size of the ladder with each mixer"
