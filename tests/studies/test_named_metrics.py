"""A metric that no shown trial can have is rejected when the study is loaded."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from activemem import register_metric, register_probe
from activemem.studies import METRICS, StudyError, load_study
from activemem.studies.catalog.metrics import PROBES

from ..golden import GoldenTexts

STUDY = """
[study]
name = "asked"
title = "Metrics that are asked for"
[model]
recipe = "{mixer} >> ff(16)"
d_model = 16
[task]
name = "{task}"
[train]
optimizer = { name = "adam", lr = 1e-3 }
batch_size = 4
epochs = 1
steps_per_epoch = 2
[factors]
mixer = ["sa", "gru"]
task = ["induction_heads", "mqar"]
"""
TABLE = '[[table]]\nname = "t"\nrows = "mixer"\ncolumns = "task"\n'
WAY = "only with [task] test_lengths; known: loss, "


def faults(text: str, **changes: str) -> list[str]:
    study = STUDY
    for old, new in changes.items():
        study = study.replace(old, new)
    with pytest.raises(StudyError) as error:
        load_study(study + text)
    return [fault.message for fault in error.value.faults]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (TABLE + 'value = "test_accuracy"\nselect = { task = "induction" }', "[[table]] value"),
        (
            TABLE + 'value = "loss"\notherwise = "test_loss[40]"\nselect = { task = "induction_heads" }',
            "[[table]] otherwise",
        ),
        (
            '[[curve]]\nname = "c"\nkind = "pareto"\nx = "test_loss"\nvalue = "dev_loss"\nseries = "mixer"\n'
            'select = { task = "induction_heads" }',
            "[[curve]] x",
        ),
        (
            '[[claim]]\nname = "c"\nholds = "test_loss[task=mqar, mixer=sa] < '
            'test_loss[task=induction_heads, mixer=sa]"',
            "[[claim]] holds: mixer=sa, task=induction_heads",
        ),
    ],
)
def test_a_metric_that_its_place_never_has_is_refused_with_the_key_that_brings_it(
    text: str, path: str
) -> None:
    (fault,) = faults(text.replace('"induction"', '"induction_heads"'))
    assert fault.startswith(f"{path}: induction_heads has 'test_")
    assert WAY in fault


def test_a_metric_that_some_selected_tasks_have_is_shown() -> None:
    shown = ("test_accuracy", "parameters", "gamma")
    (table,) = load_study(STUDY + TABLE + f"value = {list(shown)}").tables
    assert table.value == shown


def test_a_metric_that_other_keys_bring_names_them(golden: GoldenTexts) -> None:
    (fault,) = faults(TABLE + 'value = "gradient_norm"')
    golden(fault)
    (fault,) = faults(TABLE + 'value = "bleu"')
    assert fault.endswith("got 'bleu'")


@pytest.fixture
def plugged_in() -> Iterator[None]:
    register_metric("evenness", title="Evenness")(lambda: None)  # pyright: ignore[reportArgumentType]
    register_probe("tilt", title="Tilt")(lambda model, batches: {})
    yield
    for registry, name in (
        (METRICS, "evenness"),
        (METRICS, "dev_evenness"),
        (METRICS, "test_evenness"),
        (PROBES, "tilt"),
    ):
        registry.unregister(name)


@pytest.mark.usefixtures("plugged_in")
def test_metrics_and_probes_of_plugins_are_known() -> None:
    load_study(STUDY + TABLE + 'value = ["dev_evenness", "test_evenness", "tilt", "tilt[3]"]')
    (fault,) = faults(TABLE + 'value = "evenness"')
    assert fault.endswith("got 'evenness'")


def test_metrics_that_a_task_never_has_are_reported_next_to_other_faults():
    table = TABLE + 'value = "max_length"\nselect = { task = "mqar" }'
    wrong = {"epochs = 1": "epochs = 1\ncurriculum = { start = 3 }"}
    told = faults(table, **wrong)
    assert ["curriculum" in each for each in told] == [True, True, False], told
    assert "of the task 'mqar'" in told[2]
    assert len(faults(table, **{"d_model = 16": "d_modl = 16"})) == 2  # a misspelt key, and the metric
    unknown = TABLE + 'value = "max_lenth"'
    assert sum("max_lenth" in each for each in faults(unknown, **wrong)) == 1


def test_impossible_metrics_are_not_reported_while_the_metrics_are_unknown():
    table = TABLE + 'value = "test_accuracy"\nselect = { task = "induction_heads" }'
    in_task = {'name = "{task}"': 'name = "{task}"\ntest_lenghts = [40]'}
    assert not any("test_accuracy" in each for each in faults(table, **in_task))
    in_train = {"epochs = 1": 'epochs = 1\nkep = "best"'}
    assert not any("best_epoch" in each for each in faults(TABLE + 'value = "best_epoch"', **in_train))


def test_an_unknown_index_of_a_metric_is_reported_with_the_known_ones(golden):
    lengths = {
        '["induction_heads", "mqar"]': '["sort"]',
        "batch_size = 4": "batch_size = 4\nlengths = [1, 9]",
    }
    lengths['name = "{task}"'] = 'name = "{task}"\ntest_lengths = [40, 80]'
    told = faults('[[table]]\nname = "t"\nrows = "mixer"\nvalue = "test_accuracy[64]"\n', **lengths)
    golden(told)
    golden(faults('[[table]]\nname = "t"\nrows = "mixer"\nvalue = "dev_accuracy[40]"\n', **lengths))
