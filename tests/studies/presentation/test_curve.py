"""All faults of a [[curve]] are reported together, each with its line."""

import pytest

from activemem import StudyError, load_study

from ...reporting.curves.curve_factories import STUDY_TEXT, study_with_curves
from ...study_texts import study_text

GOOD = 'name = "good"\nkind = "line"\nvalue = "loss"\nx = "filter"\nseries = "mixer"\nselect.task = "sort"\n'


def message(text, *overrides):
    with pytest.raises(StudyError) as caught:
        load_study(text, overrides)
    return str(caught.value)


WRONG = """
[[curve]]
name = "first"
kind = "line"
value = "los"
x = "filtr"
series = "mixer"
select = { task = "sorted", mixers = "sa" }

[[curve]]
name = "second"
kind = "heat"
value = "loss"
x = "filter"
logx = true
select.task = []

[[curve]]
name = "third"
kind = "line"
value = "loss"
x = "mixer"
series = "mixer"
band = "sd"

[[curve]]
name = "fourth"
kind = "pareto"
value = "memory_change"
x = "second"
series = "mixer"

[[curve]]
name = "fourth"
kind = "lines"
value = "loss"
x = "filter"
spread = "std"
"""


def test_all_faults_are_reported_together(golden):
    golden(message(STUDY_TEXT + WRONG))


@pytest.mark.parametrize(
    "lines",
    [
        'kind = "line"\nx = "epoch"\nvalue = "loss"\nselect.task = "sort"',
        'kind = "line"\nx = "mixer"\nvalue = "loss"\nselect = { task = "sort", filter = 8 }',
        'kind = "pareto"\nx = "second"\nvalue = "loss"',
        f'{GOOD[14:]}accent = "conv(k=2)"',
        'kind = "bar"\nx = "mixer"\nvalue = "loss"\npublished = "table9"\n'
        'select = { task = "sort", filter = 8 }',
        f'{GOOD[14:]}y = "task"',
        f'{GOOD[14:]}panels = "filter"',
        'kind = "line"\nx = "filter"\nvalue = "loss"\naccent = "sa"\n'
        'select = { task = "sort", mixer = "sa" }',
    ],
)
def test_settings_that_do_not_fit_are_reported(lines, golden):
    golden(message(STUDY_TEXT + f'\n[[curve]]\nname = "one"\n{lines}\n'))


@pytest.mark.parametrize("value", ["test_accuracy", "test_accuracy[40]", "parameters"])
def test_a_value_that_exists_only_at_the_end_has_no_learning_curve(value, golden):
    curve = {"name": "one", "kind": "line", "value": value, "x": "epoch", "series": "mixer"}
    keys = {
        "task": {"name": "parity", "test_lengths": [20, 40]},
        "train": {"curriculum": None},
        "factors": {"mixer": ["sa", "conv(k=5)"], "seed": [0]},
    }
    told = message(study_text(**keys, curve=[curve]))
    golden(told)
    assert load_study(study_text(**keys, curve=[{**curve, "value": "dev_accuracy"}])).curves


def test_a_search_has_no_figures(golden):
    text = STUDY_TEXT.replace(
        "[factors]", '[search]\ntrials = 2\nmetric = "loss"\ndirection = "min"\n\n[factors]'
    )
    golden(message(text + "\n[[curve]]\n" + GOOD))
    laws = 'name = "t"\nkind = "scaling"\nvalue = "loss"\nx = "parameters"\nheld_out = 9\n'
    assert message(text + "\n[[table]]\n" + laws).startswith("study: 1 fault\n")


def test_no_figure_changes_a_trial():
    assert [trial.id for trial in study_with_curves(GOOD).trials] == [
        trial.id for trial in load_study(STUDY_TEXT).trials
    ]


def test_figures_are_in_the_order_of_the_file():
    study = study_with_curves(GOOD, GOOD.replace("good", "better"))
    assert [spec.name for spec in study.curves] == ["good", "better"]
