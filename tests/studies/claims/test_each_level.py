"""Claims with `each` equal separate claims for each level of a factor."""

import pytest

from activemem import StudyError, load_study

from .factories import STUDY_TEXT, study_with_claims

BEATS = "max_length[{0}mixer=sa] > max_length[{0}mixer=conv(k=3)]"
TASKS = ("reverse", "not", "addition")


def test_it_says_at_each_level_what_a_claim_that_names_the_level_says():
    each = study_with_claims(BEATS.format(""), each="task").claims
    named = study_with_claims(*(BEATS.format(f"task={task}, ") for task in TASKS)).claims
    assert [claim.spec.name for claim in each] == [f"at task={task}: 0" for task in TASKS]
    assert [claim.statement for claim in each] == [claim.statement for claim in named]
    assert [claim.varied_factors for claim in each] == [claim.varied_factors for claim in named]


def test_levels_that_loops_and_bests_leave_open_are_those_of_the_level():
    each = study_with_claims(
        "best(max_length) is sa", "all(max_length[mixer=m] > 3 for m in mixer)", each="task"
    )
    named = study_with_claims(
        *(f"best(max_length[task={task}]) is sa" for task in TASKS),
        *(f"all(max_length[task={task}, mixer=m] > 3 for m in mixer)" for task in TASKS),
    )
    assert [claim.statement for claim in each.claims] == [claim.statement for claim in named.claims]


def test_it_is_of_the_levels_that_an_override_gives_or_of_the_file_where_what_it_names_is_gone():
    overridden = 'factors.task=["not", "sort"]'
    for overrides, tasks in (
        ([overridden], ("not", "sort")),
        ([overridden, 'factors.mixer=["sa"]'], TASKS),
    ):
        study = study_with_claims(BEATS.format(""), each="task", overrides=overrides)
        assert [claim.spec.name for claim in study.claims] == [f"at task={task}: 0" for task in tasks]


def test_in_a_design_of_one_at_a_time_other_factors_are_as_in_the_baseline():
    text = STUDY_TEXT.replace("[study]", '[study]\ndesign = "one_at_a_time"').replace("[8]", "[8, 16]")
    (first, second) = study_with_claims("max_length > 3", each="width", text=text).claims
    assert [dict(claim.statement.left.cell) for claim in (first, second)] == [
        {"mixer": "sa", "task": "reverse", "width": width} for width in (8, 16)
    ]


@pytest.mark.parametrize(
    ("each", "holds", "message"),
    [
        ("tsk", BEATS.format(""), "[[claim]] each: unknown factor 'tsk'; nearest: task"),
        ("seed", BEATS.format(""), "[[claim]] each: unknown factor 'seed'"),
        (
            "task",
            BEATS.format("task=not, "),
            '[[claim]] holds: remove task: each = "task" checks the claim at every level of task',
        ),
        ("task", "max_length[mixer=conv(k=4)] > 3", "unknown level 'conv(k=4)' of mixer; nearest: conv(k=3)"),
    ],
)
def test_each_fault_is_reported_once(each, holds, message):
    with pytest.raises(StudyError) as raised:
        study_with_claims(holds, each=each)
    assert str(raised.value).count(message) == max(1, holds.count("task="))


def test_a_level_that_a_sample_of_cells_leaves_out_is_passed_over():
    sampled = "[study]\nplugins = ['sampled_designs']\ndesign = { name = 'random', cells = 3 }"
    factors = "[factors]\nmixer = ['sa']\ntask = ['not']\nseed = [0]\nwidth = [8, 16, 24, 32]\n"
    text = STUDY_TEXT.partition("[factors]")[0].replace("[study]", sampled) + factors
    study = study_with_claims("max_length > 3", each="width", text=text)
    widths = sorted({trial.levels["width"] for trial in study.trials})
    assert len(widths) == 3
    assert [claim.spec.name for claim in study.claims] == [f"at width={width}: 0" for width in widths]


def test_a_missing_cell_is_reported_with_the_level(golden):
    written = STUDY_TEXT.partition("[factors]")[0] + "[factors]\nseed = [0]\n"
    cells = """cells = [
    { mixer = "sa", task = "not", width = 8 },
    { mixer = "conv(k=3)", task = "not", width = 8 },
    { mixer = "sa", task = "reverse", width = 8 },
]
"""
    with golden.raises(StudyError):
        study_with_claims(BEATS.format(""), each="task", text=cells + written)


def test_where_factors_have_faults_a_claim_is_not_held_against_them():
    claim = "\n[[claim]]\nname = 'a'\nholds = 'loss > 3'\neach = 'tsk'\n"
    with pytest.raises(StudyError, match="1 fault") as raised:
        load_study(STUDY_TEXT.replace('["reverse", "not", "addition"]', "[]") + claim)
    assert "tsk" not in str(raised.value)
