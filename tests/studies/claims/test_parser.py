"""Parsing of claims: precedence, spellings, and errors with a caret."""

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activemem import StudyError
from activemem.reporting.claims.check import comparison_labels, full_text
from activemem.studies.claims.comparisons import AllOf, AnyOf, NotOf, iter_comparisons

from ...study_texts import study_text
from .factories import STUDY_TEXT, study_with_claims

CASES = (Path(__file__).with_name("wrong.txt")).read_text(encoding="utf-8").removesuffix("\n").split("\n\n")


def written(holds, **how):
    """Return the comparisons of a claim in full, with factors shortened to their first letters."""
    (claim,) = study_with_claims(holds, **how).claims
    texts = [full_text(each, claim) for each in iter_comparisons(claim.statement)]
    return [text.replace("max_length", "L").replace("task=", "").replace("mixer=", "") for text in texts]


@pytest.mark.parametrize("case", CASES, ids=[case.partition("\n")[0][:60] for case in CASES])
def test_a_fault_is_reported_under_the_claim(case):
    holds, _, told = case.partition("\n")
    with pytest.raises(StudyError) as caught:
        study_with_claims(holds)
    assert str(caught.value).split("\n", 2)[2] == told


READ = {
    "max_length[task=not, mixer=sa] > 3": ["L[sa, not] > 3"],
    "max_length[mixer=sa(heads=8), task='not'] <= -3.5 + 1": ["L[sa, not] <= -3.5 + 1"],
    "3 < max_length[task=not, mixer=conv(act=relu, k=3)+sa]": ["3 < L[sa + conv(k=3), not]"],
    "-max_length[task=not, mixer=sa] - (1 + 2) > -7": ["-L[sa, not] - (1 + 2) > -7"],
    "max_length[task=not, mixer=sa, width=8.0] != 3": ["L[sa, not] == 3"],
    "max_length[task=not, mixer=sa] / 2 / (3 / 4) - (1 + 2) / 5 > 1 / 3": [
        "L[sa, not] / 2 / (3 / 4) - (1 + 2) / 5 > 1 / 3"
    ],
    "max_length[task=not, mixer=sa] within 0.5 of 3": ["L[sa, not] within 0.5 of 3"],
    "gamma[10-20, task=not, mixer=sa] > gamma[20 - 30, task=not, mixer=sa]": [
        "gamma[10-20, sa, not] > gamma[20-30, sa, not]"
    ],
    "9 > max_length[task=not, mixer=sa] >= max_length[task=not, mixer=conv(k=3)] > 3": [
        "9 > L[sa, not]",
        "L[sa, not] >= L[conv(k=3), not]",
        "L[conv(k=3), not] > 3",
    ],
    "all(max_length[task=t, mixer=m] > 3 for t in [not, reverse] for m in mixer except [conv(k=20), sa])": [
        "L[conv(k=3), not] > 3",
        "L[sa + conv(k=3), not] > 3",
        "L[conv(k=3), reverse] > 3",
        "L[sa + conv(k=3), reverse] > 3",
    ],
    "any(max_length[task=not, mixer=sa + c] > max_length[task=not, mixer=c] for c in [conv(k=3)])": [
        "L[sa + conv(k=3), not] > L[conv(k=3), not]"
    ],
    "all(max_length[task=not, mixer=conv(k=k)] > k for k in [3, 20])": [
        "L[conv(k=3), not] > 3",
        "L[conv(k=20), not] > 20",
    ],
    "max_length[task=not, mixer=sa] > min(max_length[task=not, mixer=m] for m in [conv(k=3), conv(k=20)])": [
        "L[sa, not] > L[conv(k=3), not]",
        "L[sa, not] > L[conv(k=20), not]",
    ],
    "max(max_length[task=not, mixer=sa], 3) > mean(max_length[mixer=sa])": [
        "L[sa, not] > mean(L[sa, reverse], L[sa, not], L[sa, addition])",
        "3 > mean(L[sa, reverse], L[sa, not], L[sa, addition])",
    ],
    "best(max_length[task=not]) is conv(k=3) + sa": [
        "L[sa + conv(k=3), not] > L[sa, not]",
        "L[sa + conv(k=3), not] > L[conv(k=3), not]",
        "L[sa + conv(k=3), not] > L[conv(k=20), not]",
    ],
    "best(loss[task=not, mixer=m] for m in mixer except [sa]) in [conv(k=3), conv(k=20)]": [
        "loss[conv(k=3), not] < loss[sa + conv(k=3), not]",
        "loss[conv(k=20), not] < loss[sa + conv(k=3), not]",
    ],
    "worst(loss[task=not, mixer=m] for m in [sa, conv(k=3)]) is sa": ["loss[sa, not] > loss[conv(k=3), not]"],
    "steps_to[loss <= 1, task=not, mixer=sa] < steps[task=not, mixer=sa] / 2": [
        "steps_to[loss<=1, sa, not] < steps[sa, not] / 2"
    ],
    "flops[task=not, mixer=sa] / flops[task=addition, mixer=sa] < max_length[task=not, mixer=sa]": [
        "flops[sa, not] / flops[sa, addition] < L[sa, not]"
    ],
    "argmin(max_length[mixer=sa]) in [not]": [
        "L[sa, not] < L[sa, reverse]",
        "L[sa, not] < L[sa, addition]",
    ],
}


@pytest.mark.parametrize(("holds", "told"), READ.items(), ids=READ)
def test_a_claim_asks_for_comparisons(holds, told):
    assert written(holds) == told


@pytest.mark.parametrize("holds", READ)
def test_a_comparison_in_full_is_a_claim_that_says_the_same(holds):
    (claim,) = study_with_claims(holds).claims
    for one in iter_comparisons(claim.statement):
        (again,) = study_with_claims(full_text(one, claim)).claims
        assert list(iter_comparisons(again.statement)) == [one]


def test_all_any_and_or_and_not_join_statements():
    one, two = "max_length[task=not, mixer=sa] > 3", "max_length[task=not, mixer=sa] < 9"
    study = study_with_claims(
        f"{one} and {two}", f"{one} or {two} and {one}", f"not not not ({one})", f"not any({one}, {two})"
    )
    both, either, denied, neither = (claim.statement for claim in study.claims)
    assert isinstance(both, AllOf)
    assert isinstance(either, AnyOf)
    assert isinstance(either.parts[1], AllOf)
    assert isinstance(denied, NotOf)
    assert not isinstance(denied.part, NotOf)
    assert isinstance(neither, NotOf)
    assert isinstance(neither.part, AnyOf)


def test_levels_that_are_words_numbers_and_truths_are_found_as_they_are_written():
    text = STUDY_TEXT.replace("width = [8]", "width = [8, 16]\nlr = [1e-3, 0.01]\ntied = [true, false]")
    text = text.replace("lr = 1e-3", 'lr = "{lr}"').replace("d_model =", 'norm = "{norm}"\nd_model =')
    text = text.replace('"reverse", ', "").replace("tied = [true, false]", 'norm = ["pre", "post"]')
    holds = "max_length[task=not, mixer=sa, width={}, lr={}, norm={}] > 3"
    for width, rate, norm in (("8", "0.001", "pre"), ("16", "1e-3", "'post'"), ("16.0", ".01", "post")):
        (claim,) = study_with_claims(holds.format(width, rate, norm), text=text).claims
        (one,) = iter_comparisons(claim.statement)
        cell = dict(one.left.cell)
        assert (cell["width"], cell["lr"], cell["norm"]) == (float(width), float(rate), norm.strip("'"))


def test_comparisons_are_labelled_by_what_distinguishes_them():
    study = study_with_claims(
        "all(max_length[task=t, mixer=sa + c] > max_length[task=t, mixer=c] > 3"
        " for t in [not, reverse] for c in [conv(k=3)])",
        "all(max_length[task=not, mixer=m] >= 9 for m in [sa, conv(k=20)])",
        "max_length[task=not, mixer=sa] - loss[task=not, mixer=sa] > 3",
        "max_length[task=not, mixer=sa] > 3 and accuracy[task=not, mixer=sa] > 1",
    )
    assert [list(comparison_labels(claim).values()) for claim in study.claims] == [
        [
            "not: sa + conv(k=3) > conv(k=3)",
            "conv(k=3), not: max_length > 3",
            "reverse: sa + conv(k=3) > conv(k=3)",
            "conv(k=3), reverse: max_length > 3",
        ],
        ["sa", "conv(k=20)"],
        ["max_length − loss > 3"],
        ["max_length > 3", "accuracy > 1"],
    ]


def test_labels_name_the_factor_of_a_number_and_put_a_shared_metric_first():
    text = STUDY_TEXT.replace("width = [8]", "width = [8, 16]")
    study = study_with_claims(
        "max_length[task=not, mixer=sa, width=8] > max_length[task=not, mixer=sa, width=16] + 1",
        "max_length[task=not, mixer=sa, width=8] > max_length[task=reverse, mixer=sa, width=8]"
        " and loss[task=not, mixer=sa, width=16] < 3",
        text=text,
    )
    assert [list(comparison_labels(claim).values()) for claim in study.claims] == [
        ["width=8 > width=16 + 1"],
        ["width=8, max_length: not > reverse", "not, width=16: loss < 3"],
    ]


def test_levels_that_follow_from_another_level_are_left_out_of_a_label():
    text = STUDY_TEXT.replace("[study]", '[study]\ndesign = "zip"').replace(
        "width = [8]", "width = [8, 16, 32]"
    )
    text = text.replace(', "sa + conv(k=3)"', "")
    (claim,) = study_with_claims("max_length[mixer=conv(k=20)] > max_length[mixer=sa]", text=text).claims
    assert claim.dependent_factors == {"task", "width"}
    assert list(comparison_labels(claim).values()) == ["conv(k=20) > sa"]
    (whole,) = study_with_claims("max_length[mixer=sa, task=not, width=8] > 3", text=STUDY_TEXT).claims
    assert whole.dependent_factors == frozenset()
    short, long = study_with_claims(
        "best(max_length) is sa", "best(max_length[mixer=m] for m in mixer) is sa", text=text
    ).claims
    assert short.statement == long.statement, "tasks and widths follow from mixers"


def test_a_zip_whose_cells_one_factor_names_is_told_to_compare_them_in_a_loop(golden):
    text = study_text(
        study={"design": "zip"},
        model={"norm": "{norm}"},
        factors={
            "mixer": ["sa", "conv(k=3)", "gru", "sa", "conv(k=3)", "gru"],
            "norm": ["pre", "post", "pre", "post", "post", "post"],
            "task": ["not", "not", "not", "reverse", "reverse", "reverse"],
        },
    )
    with golden.raises(StudyError):
        study_with_claims("best(max_length[task=not]) is sa", text=text)
    assert written("best(max_length[task=not, mixer=m] for m in mixer) is sa", text=text) == [
        "L[sa, norm=pre, not] > L[conv(k=3), norm=post, not]",
        "L[sa, norm=pre, not] > L[gru, norm=pre, not]",
    ]


@pytest.mark.parametrize("rates", [[1e-3, 2e-3, 1e-3, 4e-3], [1e-3, 2e-3, 3e-3, 4e-3]])
def test_rates_that_follow_from_mixer_and_task_are_left_out(rates):
    text = study_text(
        study={"design": "zip"},
        train={"optimizer": {"name": "adam", "lr": "{lr}"}},
        factors={"mixer": ["sa", "gru", "sa", "gru"], "task": ["not", "not", "sort", "sort"], "lr": rates},
        table=[{"name": "t", "rows": "mixer", "value": "loss"}],
    )
    with pytest.raises(StudyError) as caught:
        study_with_claims("loss[mixer=sa, task=not] < 3", text=text)
    assert 'task (not, sort): choose one level, as in select = { task = "not" }' in str(caught.value)
    text = text.replace('rows = "mixer"', 'rows = "mixer"\ncolumns = "task"')
    (claim,) = study_with_claims("best(loss[task=sort]) is sa", text=text).claims
    assert list(comparison_labels(claim).values()) == ["sa < gru"]


def test_in_a_design_of_one_at_a_time_what_is_not_named_is_as_in_the_baseline(golden):
    text = STUDY_TEXT.replace("[study]", '[study]\ndesign = "one_at_a_time"').replace(
        "width = [8]", "width = [8, 16]"
    )
    assert written("max_length[width=16] > max_length", text=text) == [
        "L[sa, reverse, width=16] > L[sa, reverse, width=8]"
    ]
    assert written("best(max_length[mixer=m] for m in [sa, conv(k=3)]) is sa", text=text) == [
        "L[sa, reverse, width=8] > L[conv(k=3), reverse, width=8]"
    ]
    with golden.raises(StudyError):
        study_with_claims("max_length[mixer=conv(k=3), width=16] > 3", text=text)


def test_in_a_design_of_pairs_one_factor_names_the_cell():
    text = STUDY_TEXT.replace("[study]", '[study]\ndesign = "zip"').replace(
        "width = [8]", "width = [8, 16, 32]"
    )
    text = text.replace(', "sa + conv(k=3)"', "")
    assert written("max_length[width=16] > 3", text=text) == ["L[conv(k=3), not, width=16] > 3"]


def test_levels_that_an_override_takes_away_are_no_fault():
    holds = ("best(max_length[task=not]) is sa", "max_length[task=not, mixer=conv(k=3)] > 3")
    study = study_with_claims(*holds, overrides=['factors.mixer=["sa"]'])
    assert [claim.spec.holds for claim in study.claims] == list(holds)


@pytest.mark.parametrize(
    ("holds", "told"),
    [
        ("max_length[mixr=sa] > 3", "unknown factor 'mixr'; nearest: mixer"),
        (
            "max_length[task=not, mixer=conv(k=2)] > 3",
            "unknown level 'conv(k=2)' of mixer; nearest: conv(k=20)",
        ),
        (
            "all(max_length[task=not, mixer=m] > 3 for m in mixer except [conv(k=2)])",
            "unknown level 'conv(k=2)' of the loop; nearest: conv(k=20)",
        ),
        (
            "all(max_length[task=not, mixer=m] > 3 for m in [sa, conv(k=2)])",
            "unknown level 'conv(k=2)' of mixer; nearest: conv(k=20)",
        ),
        (
            "best(max_length[task=not]) is conv(k=2)",
            "unknown level 'conv(k=2)' of the comparison; nearest: conv(k=20)",
        ),
        (
            "best(max_length[task=not]) in [sa, conv(k=2)]",
            "unknown level 'conv(k=2)' of the comparison; nearest: conv(k=20)",
        ),
    ],
)
@pytest.mark.parametrize("levels", ['["sa"]', '["sa", "conv(k=9)"]'])
def test_a_level_that_neither_the_file_nor_an_override_has_is_a_fault(holds, told, levels):
    with pytest.raises(StudyError) as caught:
        study_with_claims(holds, overrides=[f"factors.mixer={levels}"])
    assert [fault.message for fault in caught.value.faults] == [f"[[claim]] holds: {told}"]


def test_faults_in_the_keys_of_a_claim_are_reported(golden):
    with golden.raises(StudyError):
        study_with_claims("max_length[task=not, mixer=sa] > 3", level=2.0, test="chi", sauce="x")


def test_a_name_is_one_claims_and_there_may_be_many_claims(golden):
    one = '\n[[claim]]\nname = "0"\nholds = "max_length[task=not, mixer=sa] > 3"\n'
    with golden.raises(StudyError):
        study_with_claims("max_length[task=not, mixer=sa] > 3", text=STUDY_TEXT + one)
    with golden.raises(StudyError):
        study_with_claims(text=STUDY_TEXT + '[claim]\nname = "x"\n')


def test_a_claim_of_a_search_is_refused(golden):
    text = STUDY_TEXT.replace(
        "[factors]", '[search]\ntrials = 3\nmetric = "loss"\ndirection = "min"\n\n[factors]'
    )
    with golden.raises(StudyError):
        study_with_claims("max_length[task=not, mixer=sa] > 3", text=text)


PIECES = (  # noqa: SIM905 -- easier to read than a list
    "all any best min not ( ) [ ] , for m in mixer task = conv(k=3) sa + - > >= == within 1 of is and or "
    "max_length max_length[task=not,mixer=sa] except ' \" { } ≥ 1e9 . k"
).split()


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=14), st.integers(0, 2**32))
def test_any_text_is_read_or_its_faults_are_reported_and_nothing_else_happens(pieces, seed):
    text = (" " if random.Random(seed).random() < 0.5 else "").join(pieces)
    try:
        study = study_with_claims(text)
    except StudyError as error:
        assert error.faults
    else:
        assert list(iter_comparisons(study.claims[0].statement))


def test_loops_in_loops_come_to_an_end(golden):
    levels = f"[{', '.join(['sa', 'conv(k=3)'] * 16)}]"
    inner = "max_length[task=not, mixer={}] > 3"
    holds = inner.format("a")
    for name in "abcdefg":
        holds = f"all({holds}, {inner.format(name)} for {name} in {levels})"
    with golden.raises(StudyError):
        study_with_claims(holds)


def test_brackets_without_end_are_reported():
    for text in ("(" * 3000, "[" * 3000, "not " * 900, "all(" * 900, "-" * 3000, "loss[a=" + "(" * 3000):
        with pytest.raises(StudyError):
            study_with_claims(text)


def test_minima_and_maxima_of_an_inequality_become_comparisons_of_their_parts():
    a, b, c = (f"max_length[task=not, mixer={mixer}]" for mixer in ("sa", "conv(k=3)", "conv(k=20)"))
    says = [
        (f"max({a}, {b}) > {c}", f"any({a} > {c}, {b} > {c})"),
        (f"{c} >= max({a}, {b})", f"all({c} >= {a}, {c} >= {b})"),
        (f"{c} - min({a}, {b}) < 1", f"all({c} - {a} < 1, {c} - {b} < 1)"),
        (f"min({a}, {b}) <= min({b}, {c})", f"any(all({a} <= {b}, {a} <= {c}), all({b} <= {c}))"),
        (f"max({a}, {b}) - min({a}, {b}) > 2", f"any(any({a} - {b} > 2), any({b} - {a} > 2))"),
        (f"not max({a}, {b}) < {c}", f"not all({a} < {c}, {b} < {c})"),
    ]
    for extreme, parts in says:
        one, other = study_with_claims(extreme, parts).claims
        assert set(one.comparisons) == set(other.comparisons), extreme
        assert type(one.statement) is type(other.statement), extreme
    for whole in (f"max({a}, {b}) == {c}", f"max({a}, {b}) / {c} > 1"):
        (claim,) = study_with_claims(whole).claims
        assert len(claim.comparisons) == 1
