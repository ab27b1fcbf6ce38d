"""Tables of cumulative studies: a row for each step, with its difference from the previous row."""

import pytest

from activemem import StudyError
from activemem.reporting.tables.render import own_format_names, render
from activemem.studies.presentation import step_name

from .test_changes import TABLE, ablation, made

STEPS = {"mixer": ["sa", "sa + conv(k=3)"], "norm": ["pre", "post"], "tied": [False, True]}
WORTH = {"mixer": 1.0, "norm": 0.0, "tied": 4.0}


def steps(*, table=TABLE, **study):
    return ablation(factors={**STEPS, "p": [0.0]}, table=table, **{"design": "cumulative", **study})


def loss(levels):
    return 1.0 + sum(worth for name, worth in WORTH.items() if levels[name] == STEPS[name][1])


def test_each_row_is_a_step_and_differs_from_the_row_before(tmp_path, golden):
    table = made(steps(), tmp_path, loss)
    assert table.rows == ("baseline", "+ conv(k=3)", "+ norm = post", "+ tied")
    (_, *differences) = [row[0].difference for row in table.cells]
    assert differences == pytest.approx([1.0, 0.0, 4.0], abs=0.05)
    assert [row[0].is_significant for row in table.cells] == [False, True, False, True]
    golden(table.caption[1])
    assert "6 degrees of freedom; Holm over the 3" in table.caption[2]
    for form in own_format_names():
        assert render(table, form)


def test_steps_can_be_shown_against_the_baseline(tmp_path):
    table = made(steps(table=TABLE | {"against": "baseline"}), tmp_path, loss)
    assert table.rows == ("baseline", "+ conv(k=3)", "+ norm = post", "+ tied")
    assert [row[0].difference for row in table.cells[1:]] == pytest.approx([1.0, 1.0, 5.0], abs=0.05)
    assert "(mixer = sa, norm = pre, tied = false)" in table.caption[1]


def test_steps_are_taken_around_each_level_of_another_factor(tmp_path):
    study = steps(around="mixer", baseline={"norm": "post"})
    assert len(study.cells) == 2 * 3 * 3
    table = made(study, tmp_path, loss)
    assert table.rows == ("baseline", "+ norm = pre", "+ tied") * 2
    assert [heading for heading, _ in table.row_groups()] == ["mixer = sa", "mixer = sa + conv(k=3)"]
    assert table.cells[3][0].difference is None


def test_rows_that_do_not_follow_each_other_differ_from_no_row_before(golden):
    with pytest.raises(StudyError) as caught:
        ablation(table=TABLE | {"against": "previous"})
    golden(caught.value.faults[0].message)


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        ("sa", "sa + {gate}", "+ gate"),
        ("conv(k={k})", "sa", "conv(k=k) → sa"),
        ("ff({width})", "{mixer}", "ff(width) → mixer"),
    ],
)
def test_a_hole_without_a_level_is_shown_by_its_name(before, after, name):
    assert step_name("block", before, after) == name
