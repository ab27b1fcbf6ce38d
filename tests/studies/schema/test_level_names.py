"""Level names are resolved by one rule in studies and commands."""

from __future__ import annotations

import pytest

from activemem.studies import StudyError, load_study, select_trials
from activemem.studies.schema.factors import NamedLevels, first_line

from ...golden import GoldenTexts

MIXERS = [
    "sa(heads=4, head_width=16)",
    "sa(heads=4, head_width=16) + conv(k=9)",
    "conv(k=9)",
    "cgru(k=3)",
    "cgru(k=5)",
]

STUDY = f"""
[study]
name = "names"
title = "Names of levels"
design = "one_at_a_time"
baseline = {{ mixer = "BASELINE" }}
[model]
recipe = "{{mixer}} >> ff(16)"
d_model = 16
[task]
name = "reverse"
[train]
optimizer = {{ name = "adam", lr = "{{lr}}" }}
lengths = [3, 6]
batch_size = 4
epochs = 1
steps_per_epoch = 2
[factors]
mixer = {MIXERS}
lr = [0.001, 0.01]
[[table]]
name = "t"
rows = "mixer"
value = "loss"
baseline = "BASELINE"
select = {{ mixer = ["sa", "NAME"], lr = "1e-3" }}
[[curve]]
name = "c"
kind = "bar"
x = "mixer"
value = "loss"
select = {{ mixer = ["sa", "NAME"], lr = 1e-3 }}
accent = "NAME"
[[claim]]
name = "x"
holds = "loss[mixer=NAME] < loss[mixer=BASELINE]"
[[claim]]
name = "y"
holds = "best(loss[mixer=m] for m in mixer) is NAME"
[[claim]]
name = "z"
holds = "all(loss[mixer=m] < loss[mixer=BASELINE] for m in mixer except [BASELINE, NAME])"
"""


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("sa", MIXERS[0]),
        ("sa(head_width=16, heads=4)", MIXERS[0]),
        ("sa+conv", MIXERS[1]),
        ("conv(k=9) + sa(heads=4, head_width=16)", MIXERS[1]),
        ("conv", MIXERS[2]),
        ("cgru( k = 5 )", MIXERS[4]),
    ],
)
def test_a_short_name_stands_for_the_only_level_that_it_fits(name: str, level: str) -> None:
    assert NamedLevels(MIXERS, "of mixer").find(name) == level


def test_an_exact_name_comes_before_a_shorter_one_of_another_level() -> None:
    assert NamedLevels(["sa(heads=2)", "sa"], "of mixer").find("sa") == "sa"
    assert NamedLevels([1, 1.0, True, "true"], "of x").find(True) is True


def test_arguments_inside_of_arguments_can_be_left_out_too() -> None:
    assert NamedLevels(["sa(pos=rope(theta=3))", "gru"], "of mixer").find("sa") == "sa(pos=rope(theta=3))"


@pytest.mark.parametrize(
    "name",
    [
        "cgru",
        "cgru(k=33)",
    ],
)
def test_an_ambiguous_name_lists_the_levels_and_an_unknown_one_the_nearest(
    name: str, golden: GoldenTexts
) -> None:
    study = load_study(STUDY.replace("BASELINE", "sa").replace("NAME", "conv"))
    with pytest.raises(StudyError) as error:
        select_trials(study, [f"mixer={name}"])
    (message,) = (fault.message for fault in error.value.faults)
    golden(message)
    with pytest.raises(StudyError) as error:
        load_study(STUDY.replace("BASELINE", "sa").replace("NAME", name))
    faults = [fault.message for fault in error.value.faults]
    keys = ["[[table]] select.mixer", "[[curve]] select.mixer"]
    assert set(faults) >= {f"{key}: {message}" for key in (*keys, "[[claim]] holds")}


def test_names_mean_the_same_level_in_designs_tables_figures_claims_and_parts() -> None:
    named = load_study(STUDY.replace("BASELINE", "sa").replace("NAME", "conv"))
    spelled = load_study(
        STUDY.replace("BASELINE", MIXERS[0]).replace("NAME", MIXERS[2]).replace('"1e-3"', "0.001")
    )
    assert named.tables == spelled.tables
    assert named.curves == spelled.curves
    assert [claim.statement for claim in named.claims] == [claim.statement for claim in spelled.claims]
    assert named.design.baseline == spelled.design.baseline
    assert [trial.id for trial in named.cells] == [trial.id for trial in spelled.cells]
    assert select_trials(named, ["mixer=sa"]) == select_trials(named, [f"mixer={MIXERS[0]}"])


def test_a_search_takes_options_by_their_short_names() -> None:
    study = load_study(
        """
[study]
name = "sought"
title = "Sought"
baseline = { mixer = "sa" }
[model]
recipe = "{mixer} >> ff(16)"
d_model = 16
[task]
name = "reverse"
[train]
optimizer = { name = "adam", lr = 1e-3 }
lengths = [3, 6]
batch_size = 4
epochs = 1
steps_per_epoch = 2
[factors]
mixer = ["conv(k=3)", "sa(heads=4, head_width=16)"]
[search]
metric = "dev_loss"
trials = 2
"""
    )
    assert study.search.baseline == {"mixer": MIXERS[0]}


def test_a_stored_failure_is_shown_by_its_first_line_as_far_as_a_person_reads_it():
    assert first_line("out of memory\nTraceback") == "out of memory"
    assert first_line("x" * 100_000) == "x" * 999 + "…"
