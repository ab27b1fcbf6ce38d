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
bands = "sd"

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
band = "std"
"""

TOLD = """\
study: 13 faults

  29 | value = "los"
               ^^^^^  [[curve]] value: unknown metric 'los'; nearest: loss
  30 | x = "filtr"
           ^^^^^^^  [[curve]] x: unknown factor 'filtr'; nearest: filter
  32 | select = { task = "sorted", mixers = "sa" }
                         ^^^^^^^^
       [[curve]] select.task: unknown level 'sorted' of task; nearest: sort
                                            ^^^^
       [[curve]] select.mixers: unknown factor 'mixers'; nearest: mixer
  34 | [[curve]]
       ^^^^^^^^^  [[curve]] missing key 'y'
  39 | logx = true
              ^^^^
       [[curve]] logx: kind 'heat' has no key logx; it is a key of kinds line and pareto
  40 | select.task = []
                     ^^
       [[curve]] select.task: expected at least one level, got an empty list
  48 | bands = "sd"
       ^^^^^  [[curve]] unknown key 'bands'; nearest: band
  53 | value = "memory_change"
               ^^^^^^^^^^^^^^^
       [[curve]] value: expected a metric for which higher or lower is better, got 'memory_change'
  54 | x = "second"
           ^^^^^^^^
       [[curve]] x: expected a cost or a metric, got 'second'; nearest: seconds
  58 | name = "fourth"
              ^^^^^^^^
       [[curve]] name: the name 'fourth' is taken by another curve
  59 | kind = "lines"
              ^^^^^^^  [[curve]] kind: unknown kind 'lines'; nearest: line
  62 | band = "std"
              ^^^^^
       [[curve]] band: expected 'sd', 'se', 'ci' or 'minmax', got 'std'; nearest: sd"""


def test_all_faults_are_reported_together():
    assert message(STUDY_TEXT + WRONG) == TOLD


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (
            'kind = "line"\nx = "epoch"\nvalue = "loss"\nselect.task = "sort"',
            "x: this would mix the levels of mixer (sa, conv(k=20), sa + conv(k=20)) and filter (8, 80, 800)"
            ': choose one level of each, as in select = { mixer = "sa", filter = 8 }',
        ),
        (
            'kind = "line"\nx = "mixer"\nvalue = "loss"\nselect = { task = "sort", filter = 8 }',
            "x: expected a factor whose levels are numbers, got 'sa', 'conv(k=20)', 'sa + conv(k=20)'",
        ),
        (
            'kind = "pareto"\nx = "second"\nvalue = "loss"',
            "x: expected a cost or a metric, got 'second'; nearest: seconds",
        ),
        (
            f'{GOOD[14:]}accent = "conv(k=2)"',
            "accent: unknown level 'conv(k=2)' of mixer; nearest: conv(k=20)",
        ),
        (
            'kind = "bar"\nx = "mixer"\nvalue = "loss"\npublished = "table9"\n'
            'select = { task = "sort", filter = 8 }',
            "published: no published table 'table9' of active-memory-transformer; nearest: table4",
        ),
        (f'{GOOD[14:]}y = "task"', "y: kind 'line' has no key y; it is a key of kind heat"),
        (f'{GOOD[14:]}panels = "filter"', "panels: x already has the factor 'filter': choose another one"),
        (
            'kind = "line"\nx = "filter"\nvalue = "loss"\naccent = "sa"\n'
            'select = { task = "sort", mixer = "sa" }',
            "accent: set series to the factor that has this level",
        ),
    ],
)
def test_settings_that_do_not_fit_are_reported(lines, told):
    first, *rest = message(STUDY_TEXT + f'\n[[curve]]\nname = "one"\n{lines}\n').splitlines()
    assert (first, rest[-1].strip(" ^")) == ("study: 1 fault", f"[[curve]] {told}")


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


def test_no_figure_changes_a_trial():
    assert [trial.id for trial in study_with_curves(GOOD).trials] == [
        trial.id for trial in load_study(STUDY_TEXT).trials
    ]


def test_figures_are_in_the_order_of_the_file():
    study = study_with_curves(GOOD, GOOD.replace("good", "better"))
    assert [spec.name for spec in study.curves] == ["good", "better"]
