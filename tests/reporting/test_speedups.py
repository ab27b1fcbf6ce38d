"""Speedups: ratios of costs to reach a target, with an interval or a bound."""

import math
import re
import runpy
from pathlib import Path

import pytest

from activemem import StudyError, StudyResults
from activemem.reporting import Verdict
from activemem.reporting.statistics.speedup import TargetCosts, format_ratio, speedups
from activemem.storage import Store

from .target_factories import FAST, NEVER, SLOW, TRAIN, results, store_course, study, target_table

ROOT = Path(__file__).parents[2]
T = 4.302652729911275  # of a two-sided interval at 95 % with 2 degrees of freedom
TARGET = "flops_to[dev_loss <= 1.5]"
SPEEDUP = "speedup(sa over conv(k=3), steps_to[dev_loss <= 1.5])"


def took(reached, limits=(), resolution=0.0):
    own = dict(enumerate(reached))
    return TargetCosts(
        reached=own,
        limits=dict(enumerate(limits, len(own))),
        resolution=dict.fromkeys(own, resolution),
    )


def test_a_speedup_is_the_geometric_mean_of_paired_ratios_with_a_t_interval_of_logarithms():
    found = speedups([took([100, 200, 400]), took([50, 100, 100])], 0)
    assert found[0] is None
    logs = [math.log(2), math.log(2), math.log(4)]
    middle = sum(logs) / 3
    error = math.sqrt(sum((each - middle) ** 2 for each in logs) / 2 / 3)
    assert found[1].value == pytest.approx(math.exp(middle))
    assert found[1].low == pytest.approx(math.exp(middle - T * error))
    assert found[1].high == pytest.approx(math.exp(middle + T * error))


def test_an_evaluation_counts_as_the_middle_since_the_one_before_and_widens_the_interval():
    [_, found] = speedups([took([400] * 3, resolution=100), took([200] * 3, resolution=100)], 0)
    assert found.value == pytest.approx(350 / 150)
    half = T * math.sqrt(((100 / 350) ** 2 + (100 / 150) ** 2) / 12 / 3)
    assert found.high == pytest.approx(found.value * math.exp(half))


def test_censored_trainings_bound_a_speedup_on_the_side_that_is_known():
    slow = speedups([took([100, 100], [400]), took([50, 50, 50])], 0)[1]
    assert (slow.bound, slow.low, slow.value) == (">", None, pytest.approx((2 * 2 * 8) ** (1 / 3)))
    fast = speedups([took([100, 100]), took([50], [400])], 0)[1]
    assert (fast.bound, fast.value) == ("<", pytest.approx(math.sqrt(2 / 4)))
    assert speedups([took([100], [400]), took([50], [400])], 0)[1] is None
    assert speedups([took([]), took([50])], 0)[1] is None


def test_a_seed_that_misses_the_target_leaves_the_ratios_of_the_others():
    slow, fast = took([400] * 3, [900], resolution=100), took([200] * 4, resolution=100)
    [_, found] = speedups([slow, fast], 0)
    assert found.value == pytest.approx(((350 / 150) ** 3 * 900 / 200) ** (1 / 4))


def speedup_table(**keys):
    return [{"kind": "speedup", "name": "to", "rows": "mixer", "baseline": "sa", "value": TARGET, **keys}]


def test_a_table_has_the_speedup_of_each_row_over_its_baseline(tmp_path):
    courses = {"sa": [SLOW] * 3, "conv(k=3)": [FAST] * 3}
    table = results(study(table=speedup_table()), tmp_path, courses).table()
    (base,), (conv,) = table.cells
    assert (base.text, conv.text, conv.count) == ("1", "2.33", 3)
    assert conv.estimate.low < 350 / 150 < conv.estimate.high
    assert "value of sa divided" in table.caption


def test_a_table_shows_bounds_and_why(tmp_path):
    courses = {"sa": [NEVER] * 3, "conv(k=3)": [FAST] * 3}
    table = results(study(table=speedup_table()), tmp_path, courses).table()
    (_,), (conv,) = table.cells
    assert (conv.text, conv.at_least) == ("> 2.00", pytest.approx(2.0))
    assert re.match("3 .* dev_loss ≤ 1.5", table.footnotes[0].text)
    assert any("are bounds" in sentence for sentence in table.sentences)


def test_a_table_counts_the_added_seeds_that_are_stored(tmp_path):
    found = study(
        table=speedup_table(), study={"max_seeds": 5}, claim=[{"name": "faster", "holds": f"{SPEEDUP} > 1"}]
    )
    store = Store(tmp_path)
    for trial in found.with_later_seeds().trials:
        if trial.seed < 4:
            store_course(store, trial, FAST if trial.levels["mixer"] == "sa" else SLOW)
    table = StudyResults(found, store).table()
    assert table.cells[1][0].count == 4


def claims(*holds):
    return [{"name": f"claim {number}", "holds": each} for number, each in enumerate(holds)]


def test_a_claim_shows_the_speedup_itself_and_compares_it_on_logarithms(tmp_path, golden):
    found = study(
        range(4),
        claim=claims(f"{SPEEDUP} > 1.1", f"1.1 < {SPEEDUP}", f"{SPEEDUP} < 1"),
        train={**TRAIN, "epochs": 8},
    )
    fast, slow = [3.0, 1.4], [3.0] * 7 + [1.4]
    courses = {"sa": [fast + [1.0] * 6] * 4, "conv(k=3)": [slow] * 4}
    above, mirrored, below = results(found, tmp_path, courses).check_claims()
    assert [each.verdict for each in (above, mirrored, below)] == [
        Verdict.CONFIRMED,
        Verdict.CONFIRMED,
        Verdict.REFUTED,
    ]
    deciding = above.deciding
    assert deciding.is_ratio
    assert deciding.effect == pytest.approx(750 / 150)
    assert deciding.interval[0] > 1.1
    golden(deciding.text)
    assert "×5.00" in str(above)
    again = study(range(4), claim=claims(deciding.text), train={**TRAIN, "epochs": 8})
    assert again.claims[0].statement == found.claims[0].statement


def test_a_speedup_without_an_end_is_decided_by_ranks(tmp_path):
    found = study(range(6), claim=claims(f"{SPEEDUP} > 1.5"))
    courses = {"sa": [FAST] * 6, "conv(k=3)": [NEVER] * 6}
    (one,) = results(found, tmp_path, courses).check_claims()
    assert (one.verdict, one.deciding.effect) == (Verdict.CONFIRMED, None)
    assert "(> 2.00)" in str(one)


def test_a_table_and_a_claim_give_the_same_bound_of_a_speedup(tmp_path):
    tables = {
        "table": [*speedup_table(value="steps_to[dev_loss <= 1.5]", baseline="conv(k=3)")],
        "claim": claims(f"{SPEEDUP} > 1", f"{SPEEDUP} < 2"),
    }
    for name, courses, text, verdicts in (
        # conv(k=3) was stopped before sa reached the target, so which of them is faster is unknown
        ("cheaper", {"sa": [SLOW] * 8, "conv(k=3)": [NEVER[:2]] * 8}, "> 0.50", ["undecided"] * 2),
        ("equal", {"sa": [FAST] * 8, "conv(k=3)": [NEVER] * 8}, "> 2.00", ["confirmed", "refuted"]),
        ("behind", {"sa": [NEVER] * 8, "conv(k=3)": [FAST] * 8}, "< 0.50", ["refuted", "confirmed"]),
        (
            "mixed",
            {"sa": [FAST] * 8, "conv(k=3)": [NEVER] + [SLOW] * 7},
            "> 2.29",  # seven middles give 3.5 / 1.5 each, and the one that is missed at least 2
            ["confirmed", "refuted"],
        ),
        ("neither", {"sa": [NEVER, *[FAST] * 7], "conv(k=3)": [NEVER] * 8}, "–", ["undecided"] * 2),
    ):
        found = results(study(range(8), **tables), tmp_path / name, courses)
        checked = found.check_claims()
        assert [each.verdict for each in checked] == verdicts, name
        cell = found.table().cells[0][0]
        assert cell.text == text, name
        assert cell.status == "censored"
        assert {each.deciding.effect_text or "–" for each in checked} == {text}, name


@pytest.mark.parametrize(
    "holds",
    [
        "speedup(sa over conv(k=3), loss) > 1",
        "speedup(sa over sa, steps_to[dev_loss <= 1]) > 1",
        "speedup(sa over gru, steps_to[dev_loss <= 1]) > 1",
        "speedup(sa, steps_to[dev_loss <= 1]) > 1",
        f"{SPEEDUP} > 0",
        f"{SPEEDUP} + 1 > 2",
        f"{SPEEDUP} > loss[mixer=sa]",
        f"{SPEEDUP} > speedup(sa over conv(k=3), flops_to[dev_loss <= 1.5])",
        "speedup(sa over conv(k=3), steps_to[test_loss <= 1]) > 1",
    ],
)
def test_a_speedup_that_says_nothing_is_a_fault_of_the_study(holds, golden):
    with golden.raises(StudyError):
        study(claim=claims(holds))


def test_a_table_refuses_what_is_no_target():
    with pytest.raises(StudyError, match="expected steps_to"):
        study(table=speedup_table(value="dev_loss"))
    with pytest.raises(StudyError, match="unknown level 'gru'"):
        study(table=speedup_table(baseline="gru"))
    study(table=target_table(TARGET))


@pytest.mark.slow
@pytest.mark.parametrize("evaluations", [10, 40, 1000])
@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_intervals_of_speedups_cover_the_true_ratio(seeds, evaluations):
    bench = runpy.run_path(str(ROOT / "bench" / "speedup_coverage.py"))
    covered = {
        name: bench["coverage"](seeds, evaluations, each, 4000) for name, each in bench["SPREADS"].items()
    }
    assert covered["equal"] > 0.94
    assert covered["fastest 3 times"] > 0.92


def test_a_ratio_of_which_nothing_is_known_has_no_digits():
    assert [format_ratio(each, 2) for each in (0.5, 1000.0, 1e9)] == ["0.50", "1,000.00", "> 1,000"]


def test_a_baseline_without_results_has_no_number(tmp_path):
    table = results(study(table=speedup_table()), tmp_path, {"sa": [], "conv(k=3)": [FAST] * 3}).table()
    assert [cell.text for (cell,) in table.cells] == ["–", "–"]
