"""Targets: the cost to reach a value of a metric, in tables, claims and figures."""

import math
import random

import pytest

from activemem import StudyError, StudyResults, load_study
from activemem.reporting import Verdict
from activemem.reporting.claims.hypothesis_test import paired_test
from activemem.reporting.tables.render import rich
from activemem.reporting.tables.table import iter_records
from activemem.storage import Store

from ..study_texts import study_text
from .target_factories import FAST, NEVER, SLOW, results, store_course, study, target_table


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("steps_to[dev_loss <= 1.5]", 200),
        ("tokens_to[dev_loss<=1.5]", 1000),
        ("flops_to[dev_loss <= 1.5]", 4e8),
        ("seconds_to[ dev_loss  <= 1.5 ]", 20.0),
    ],
)
def test_a_target_counts_up_to_the_first_evaluation_that_reaches_it(word, expected, tmp_path):
    found = results(study(table=target_table(word)), tmp_path, {"sa": [FAST] * 3, "conv(k=3)": [SLOW] * 3})
    values = {record["row"]: record["value"] for record in iter_records(found.table())}
    assert values == {"sa": expected, "conv(k=3)": 2 * expected}


def test_a_training_that_never_reaches_the_target_is_shown_as_a_bound(tmp_path, golden):
    courses = {"sa": [FAST, FAST, NEVER], "conv(k=3)": [NEVER] * 3}
    table = results(study(table=target_table("steps_to[dev_loss <= 1.5]")), tmp_path, courses).table()
    (some,), (none,) = table.cells
    assert (some.status, some.text, none.text) == ("censored", "> 267", "> 400")
    golden([note.text for note in table.footnotes])
    assert any(sentence.startswith("> ") for sentence in table.sentences)
    assert [record["low"] for record in iter_records(table)] == [pytest.approx(800 / 3), 400]
    assert "> 400" in rich.render(table, width=80)


def test_a_target_without_the_history_of_its_metric_says_so(tmp_path, golden):
    found = results(
        study(table=target_table("steps_to[dev_loss <= 1.5]")),
        tmp_path,
        {"sa": [FAST] * 3, "conv(k=3)": [SLOW] * 3},
    )
    for file in (tmp_path / "metrics").rglob("*.parquet"):
        file.unlink()
    golden([note.text for note in found.table().footnotes])


def test_operations_to_a_target_have_three_digits_and_a_prefix(tmp_path, golden):
    courses = {"sa": [FAST, FAST, SLOW], "conv(k=3)": [FAST, FAST, NEVER]}
    table = results(study(table=target_table("flops_to[dev_loss <= 1.5]")), tmp_path, courses).table()
    (some,), (none,) = table.cells
    assert (some.text, none.text) == ("533 MFLOPs", "> 533 MFLOPs")
    golden([note.text for note in table.footnotes])


def test_a_value_that_is_no_number_reaches_no_target(tmp_path):
    found = study(seeds=(0,), table=target_table("steps_to[dev_accuracy >= 0.5]"))
    store = Store(tmp_path)
    for trial in found.trials:
        store_course(store, trial, [math.nan, 0.2, 0.6, 0.7], metric="dev_accuracy")
    assert [cell.text for (cell,) in StudyResults(found, store).table().cells] == ["300", "300"]


def test_a_censored_cell_has_no_difference_and_is_never_best(tmp_path):
    courses = {"sa": [SLOW] * 3, "conv(k=3)": [FAST, FAST, NEVER]}
    spec = target_table("steps_to[dev_loss <= 1.5]", baseline="sa")
    (sa,), (conv,) = results(study(table=spec), tmp_path, courses).table().cells
    assert sa.best
    assert not conv.best
    assert conv.difference is None


def claim(holds):
    return [{"name": "faster", "holds": holds}]


FASTER = "steps_to[dev_loss <= 1.5, mixer=sa] < steps_to[dev_loss <= 1.5, mixer=conv(k=3)]"


def test_censored_comparisons_are_decided_by_ranks_and_need_six_seeds(tmp_path):
    three = results(study(claim=claim(FASTER)), tmp_path / "3", {"sa": [FAST] * 3, "conv(k=3)": [NEVER] * 3})
    (one,) = three.check_claims()
    assert (one.verdict, one.deciding.effect, one.needed) == (Verdict.UNDECIDED, None, 6)
    assert one.deciding.bounds == (None, pytest.approx(-200))
    assert "< −200" in str(one)
    assert "did not reach" in one.deciding.notes[0].what
    courses = {"sa": [FAST] * 6, "conv(k=3)": [NEVER] * 5 + [SLOW]}
    (six,) = results(study(range(6), claim=claim(FASTER)), tmp_path / "6", courses).check_claims()
    assert (six.verdict, six.deciding.p) == (Verdict.CONFIRMED, pytest.approx(2 / 2**6))
    assert six.deciding.bounds == (None, pytest.approx(-200))


def test_a_training_that_was_stopped_sooner_than_the_other_reached_the_target_is_not_behind_it(tmp_path):
    courses = {"sa": [SLOW] * 8, "conv(k=3)": [NEVER[:2]] * 8}
    (one,) = results(study(range(8), claim=claim(FASTER)), tmp_path, courses).check_claims()
    assert (one.verdict, one.deciding.p, one.needed) == (Verdict.UNDECIDED, 1, None)
    assert one.deciding.bounds == (None, pytest.approx(200))
    same = {"sa": [SLOW] * 8, "conv(k=3)": [NEVER] * 8}  # reached at the very last evaluation of the other
    (one,) = results(study(range(8), claim=claim(FASTER)), tmp_path / "same", same).check_claims()
    assert one.verdict is Verdict.CONFIRMED


def test_an_added_seed_that_missed_the_target_leaves_the_verdict_of_an_earlier_look(tmp_path):
    courses = {"sa": [FAST] * 5, "conv(k=3)": [SLOW] * 4 + [NEVER]}
    found = study(study={"max_seeds": 5}, claim=claim(FASTER))
    store = Store(tmp_path)
    for trial in found.with_later_seeds().cells:
        store_course(store, trial, courses[trial.levels["mixer"]][trial.levels["seed"]])
    (one,) = StudyResults(found, store).check_claims()
    assert (one.verdict, one.deciding.n, one.deciding.effect) == (Verdict.CONFIRMED, 3, -200)


def test_a_target_that_neither_side_reached_decides_nothing_with_any_number_of_seeds(tmp_path, golden):
    courses = {"sa": [NEVER] * 3, "conv(k=3)": [NEVER[:2]] * 3}
    found = results(study(study={"max_seeds": 8}, claim=claim(FASTER)), tmp_path, courses)
    (one,) = found.check_claims()
    assert (one.verdict, one.deciding.effect, one.deciding.bounds) == (
        Verdict.UNDECIDED,
        None,
        (None, None),
    )
    assert one.needed is None
    golden(str(one.deciding.notes[-1]))
    assert found.claims.row(0)[2:5] == (None, None, None)


def test_uncensored_targets_are_compared_as_any_other_metric(tmp_path):
    courses = {"sa": [FAST] * 3, "conv(k=3)": [SLOW] * 3}
    (one,) = results(study(claim=claim(FASTER)), tmp_path, courses).check_claims()
    assert (one.deciding.effect, one.deciding.bounds) == (-200, None)


def bounded(ends, region=(-math.inf, 0.0)):
    lows, highs = (dict(enumerate(side)) for side in zip(*ends, strict=True))
    return paired_test(
        differences=lows, highest=highs, region=region, rounding=0, test="pooled", complete=True
    )


def test_a_median_and_a_sum_of_ranks_that_disagree_decide_nothing():
    differences = [-1.0, -2.0, -3.0, -1.5, math.inf, math.inf, math.inf]
    assert bounded([(each, each) for each in differences]).p == 1


@pytest.mark.parametrize(
    "region", [(-math.inf, 0.0), pytest.param((0.0, math.inf), marks=pytest.mark.heavy), (-1.0, 1.0)]
)
def test_bounds_never_decide_more_surely_than_the_values_within_them(region):
    chance, decided = random.Random(0), 0
    for _ in range(100):
        centre = chance.choice([-2, 2])
        middles = [chance.gauss(centre, 1) for _ in range(8)]
        ends = [(each - chance.expovariate(5), each + chance.expovariate(5)) for each in middles]
        ends[0] = (ends[0][0], math.inf) if centre > 0 else (-math.inf, ends[0][1])
        test = bounded(ends, region)
        decided += test.p < 0.1
        for _ in range(10 * (test.p < 0.1)):
            values = [chance.uniform(max(low, -9), min(high, 9)) for low, high in ends]
            one = bounded([(each, each) for each in values], region)
            assert one.inside is test.inside
            assert one.p <= test.p
    assert decided > 3


def test_curves_go_over_what_was_spent(tmp_path):
    keys = {"kind": "line", "value": "dev_loss", "series": "mixer"}
    curves = [{"name": x, "x": x, **keys} for x in ("tokens", "flops", "seconds")]
    found = results(study(curve=curves), tmp_path, {"sa": [FAST] * 3, "conv(k=3)": [SLOW] * 3})
    ends = {curve.name: curve.panels[0].content.lines[0].points[-1].x for curve in found.curves()}
    assert ends == {"tokens": 2000, "flops": 8e8, "seconds": pytest.approx(40)}
    assert {point.n for point in found.curve("seconds").panels[0].content.lines[0].points} == {3}


def text_study(**task):
    task = {"name": "language_model", "corpus": "paradise-lost", "batching": "lines", **task}
    curve = [{"name": "course", "kind": "line", "value": "dev_loss", "x": "epoch", "series": "mixer"}]
    return study(task=task, table=target_table("steps_to[dev_loss <= 1.0]"), curve=curve)


def test_a_course_does_not_mix_a_part_of_the_dev_split_with_all_of_it(tmp_path):
    courses = {"sa": [[3.0, 1.0, 1.2]] * 3, "conv(k=3)": [[3.0, 2.0, 0.9]] * 3}
    for task, ends, costs, noted in (
        ({}, [3, 3], ["200", "300"], False),
        # the bound of the second training leaves out its last epoch, which no part of the split has scored
        ({"dev_tokens": 500}, [2, 2], ["200", "> 200"], True),
    ):
        found = results(text_study(**task), tmp_path / str(noted), courses)
        curve = found.curve()
        assert [line.points[-1].x for line in curve.panels[0].content.lines] == ends
        assert any("whole dev split" in note for note in curve.notes) is noted
        assert [row[0].text for row in found.table().cells] == costs


def test_the_only_evaluation_of_a_training_is_drawn(tmp_path):
    found = results(text_study(dev_tokens=500), tmp_path, {"sa": [[1.2]] * 3, "conv(k=3)": [[0.9]] * 3})
    assert [line.points[-1].x for line in found.curve().panels[0].content.lines] == [1, 1]


@pytest.mark.parametrize(
    "word",
    [
        "steps_to[dev_loss >= 1.5]",
        "steps_to[test_loss <= 1.5]",
        "steps_to[dev_bits_per_byte <= 3]",
        "steps_to[test_loss <= 1.5]",
        "steps_to[dev_los <= 1.5]",
        "steps_to[dev_loss < 1.5]",
        "steps_to[dev_loss]",
        "steps_to",
        "steps_to[best_epoch <= 2]",
    ],
)
def test_a_target_that_no_trial_can_show_is_a_fault_of_the_study(word, golden):
    with golden.raises(StudyError):
        study(table=target_table(word))


def test_growing_lengths_have_targets_in_steps_alone():
    growing = {"task": {"name": "reverse"}, "train": {}}
    load_study(
        study_text(**growing, factors={"mixer": ["sa"]}, table=target_table("steps_to[accuracy >= 0.9]"))
    )
    for tables, message in (
        ({"table": target_table("flops_to[accuracy >= 0.9]")}, "use steps_to"),
        (
            {"curve": [{"name": "c", "kind": "line", "value": "loss", "x": "flops", "series": "mixer"}]},
            "use epoch or step",
        ),
    ):
        with pytest.raises(StudyError, match=message):
            load_study(study_text(**growing, factors={"mixer": ["sa"]}, **tables))


def test_searches_refuse_targets_with_the_reason(golden):
    search = {
        "search": {"metric": "steps_to[dev_loss <= 1]", "trials": 2},
        "space": {"mixer": "choice(sa, gru)"},
    }
    with golden.raises(StudyError):
        study(factors={}, **search)


def test_a_target_has_no_course_to_draw(golden):
    curve = [
        {"name": "c", "kind": "line", "value": "steps_to[dev_loss <= 1]", "x": "epoch", "series": "mixer"}
    ]
    with golden.raises(StudyError):
        study(curve=curve)


@pytest.mark.parametrize(
    "holds",
    [
        "{steps} < {flops}",
        "{steps} - {flops} > 0",
        "{steps} / {flops} > 1",
        "{steps} within 5 of max({flops}, 3)",
        "{steps} < {other}",
        "all({steps} < {other} for m in [sa])",
    ],
)
def test_costs_to_different_targets_are_not_compared(holds, golden):
    named = {
        "steps": "steps_to[dev_loss <= 1.5, mixer=sa]",
        "flops": "flops_to[dev_loss <= 1.5, mixer=conv(k=3)]",
        "other": "steps_to[dev_accuracy >= 0.7, mixer=conv(k=3)]",
    }
    with golden.raises(StudyError):
        study(claim=[{"name": "faster", "holds": holds.format(**named)}])


def test_ratios_of_costs_to_different_targets_are_compared():
    early, late = (
        f"steps_to[dev_loss <= {loss}, mixer=sa] / steps_to[dev_loss <= {loss}, mixer=conv(k=3)]"
        for loss in (2.0, 1.5)
    )
    (claim,) = study(claim=[{"name": "the lead grows", "holds": f"{late} < {early}"}]).claims
    assert len(claim.comparisons) == 1
