"""Tables as levels: tasks, optimisers and schedules with their own keys in one study."""

from __future__ import annotations

import pytest

from activemem.studies import Study, StudyError, load_study, select_trials

from ...golden import GoldenTexts

HEAD = """
[study]
name = "own-keys"
title = "Tasks with keys of their own"
[model]
recipe = "{mixer} >> ff(16)"
d_model = 16
"""
TRAIN = "batch_size = 4\nepochs = 1\nsteps_per_epoch = 2\n"
STUDY = f"""{HEAD}
[task]
name = "{{task}}"
dev_examples = 64
[train]
optimizer = "{{optimizer}}"
{TRAIN}
[factors]
mixer = ["sa", "gru"]
task = [
  {{ name = "mqar", pairs = 4, dev_examples = 32 }},
  {{ name = "induction_heads", lengths = [16, 32], test_lengths = [40] }},
  {{ label = "bits", name = "parity", test_lengths = [9] }},
]
optimizer = [
  {{ name = "sgd", lr = 0.1 }},
  {{ label = "slow", name = "adam", lr = 1e-4 }},
  {{ label = "fast", name = "adam", lr = "{{lr}}" }},
]
lr = [0.01, 0.02]
seed = [0, 1]
[when]
lr = {{ optimizer = "fast" }}
"""
SHOWN = """
[[table]]
name = "t"
rows = "mixer"
columns = "task"
value = "test_loss"
select = { optimizer = "slow", task = ["induction_heads", "bits"] }
[[claim]]
name = "c"
holds = "test_loss[task=bits, mixer=sa, optimizer=slow] < test_loss[task=bits, mixer=gru, optimizer=slow]"
"""


def ids(study: Study) -> set[str]:
    return {trial.id for trial in study.trials}


def old_ways() -> set[str]:
    """Return the trials of separate studies, each with one task and one optimiser."""
    tasks = (
        'name = "mqar"\npairs = 4\ndev_examples = 32',
        'name = "induction_heads"\nlengths = [16, 32]\ntest_lengths = [40]\ndev_examples = 64',
        'name = "parity"\ntest_lengths = [9]\ndev_examples = 64',
    )
    optimizers = (
        ('{ name = "sgd", lr = 0.1 }', ""),
        ('{ name = "adam", lr = 1e-4 }', ""),
        ('{ name = "adam", lr = "{lr}" }', "lr = [0.01, 0.02]"),
    )
    return {
        trial
        for task in tasks
        for optimizer, rates in optimizers
        for trial in ids(
            load_study(
                f"{HEAD}[task]\n{task}\n[train]\noptimizer = {optimizer}\n{TRAIN}"
                f'[factors]\nmixer = ["sa", "gru"]\nseed = [0, 1]\n{rates}\n'
            )
        )
    }


def test_trials_are_those_of_studies_with_one_task_each() -> None:
    study = load_study(STUDY + SHOWN)
    assert study.factors["task"] == ("mqar", "induction_heads", "bits")
    assert study.factors["optimizer"] == ("sgd", "slow", "fast")
    assert ids(study) == old_ways()
    assert len(study.trials) == 48


def test_a_part_is_selected_by_the_names_of_tables() -> None:
    study = load_study(STUDY)
    chosen = select_trials(study, ["task=mqar", "optimizer=fast"])
    trials = [trial for trial in study.trials if trial.id in chosen]
    assert len(trials) == 8
    assert {trial.settings.task.name for trial in trials} == {"mqar"}
    assert {trial.settings.train.optimizer.lr for trial in trials} == {0.01, 0.02}


def test_tables_and_texts_can_be_levels_of_one_factor() -> None:
    study = load_study(
        f'{HEAD}[task]\nname = "{{task}}"\n[train]\noptimizer = {{ name = "adam", lr = 1e-3 }}\n'
        f'curriculum = "{{growth}}"\n{TRAIN}[factors]\nmixer = ["sa"]\n'
        'task = ["reverse", { name = "mqar", pairs = 2 }]\n'
        'growth = [{ label = "strict", start = 3, grow_at = 1.0 }, { label = "lax", start = 3 }]\n'
        '[when]\ngrowth = { task = "reverse" }\n'
    )
    found = [(trial.levels["task"], trial.levels["growth"]) for trial in study.cells]
    assert sorted(found) == [("mqar", "–"), ("reverse", "lax"), ("reverse", "strict")]


def test_listed_cells_may_have_tables_too() -> None:
    study = load_study(
        f'{HEAD}[task]\nname = "{{task}}"\n[train]\noptimizer = {{ name = "adam", lr = 1e-3 }}\n{TRAIN}'
        '[[cells]]\nmixer = "sa"\ntask = { name = "mqar", pairs = 2 }\n'
        '[[cells]]\nmixer = "gru"\ntask = "mqar"\n'
    )
    assert [getattr(trial.settings.task, "pairs") for trial in study.cells] == [2, 2]  # noqa: B009


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('label = "fast", ', ""),
        ('label = "slow", name = "adam"', 'label = "sgd", name = "adam"'),
        ('name = "mqar", pairs', "pairs"),
        ("pairs = 4", "pears = 4"),
        ("lr = 1e-4", "lr = -1"),
        ('lr = "{lr}"', 'lr = "{rate}"'),
    ],
)
def test_a_fault_in_a_table_is_reported_at_its_level(old: str, new: str, golden: GoldenTexts) -> None:
    text = STUDY.replace(old, new)
    if old == 'label = "fast", ':
        text = text.replace('label = "slow", ', "").replace('optimizer = "fast"', 'optimizer = "adam"')
    with pytest.raises(StudyError) as error:
        load_study(text)
    messages = [fault.message for fault in error.value.faults]
    golden(messages)
