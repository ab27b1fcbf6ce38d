"""Runs of other programs, judged: numbers of SciPy, refusals in a sentence, and the mark on everything."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from scipy import stats

import activemem
from activemem.engine.run.driver import run_study
from activemem.errors import ActivememError
from activemem.reporting.claims.verdicts import ClaimResult
from activemem.reporting.statistics.estimates import holm_adjusted
from activemem.storage import Store

GOLF = """record,seed,val_bpb,bytes,train_s
plain,42,1.0701,15923358,599.5
plain,314,1.0707,15984268,599.8
plain,999,1.0698,15931701,599.5
plain,2025,1.0704,15906892,599.7
tuned,42,1.0612,15978537,599.5
tuned,0,1.0616,15903550,599.6
tuned,1234,1.0609,15910458,599.6
tilted,1337,1.0703,15911458,599.8
tilted,42,1.0694,15974517,599.4
tilted,2024,1.0699,15935541,599.5
"""
WANDB = """Name,State,User,Created,lr,mixer,seed,_step,train/loss,val/loss
a0,finished,ann,2026-11-10T09:00:00.000Z,0.003,attn,0,4999,3.11,3.281
a1,finished,ann,2026-11-11T09:00:00.000Z,0.003,attn,1,4999,3.10,3.272
a2,finished,ann,2026-11-12T09:00:00.000Z,0.003,attn,2,4999,3.10,3.290
a3,finished,ann,2026-11-13T09:00:00.000Z,0.003,attn,3,4999,3.08,3.266
b0,finished,ann,2026-11-10T09:00:00.000Z,0.003,both,0,4999,3.11,3.237
b1,finished,ann,2026-11-11T09:00:00.000Z,0.003,both,1,4999,3.09,3.229
b2,finished,ann,2026-11-12T09:00:00.000Z,0.003,both,2,4999,3.09,3.248
b3,running,ann,2026-11-13T09:00:00.000Z,0.003,both,3,2210,3.09,3.617
c0,crashed,ann,2026-11-10T09:00:00.000Z,0.003,conv,0,2210,3.10,
c1,finished,ann,2026-11-11T09:00:00.000Z,0.003,conv,1,4999,3.09,3.298
c2,finished,ann,2026-11-12T09:00:00.000Z,0.003,conv,2,4999,3.10,3.291
c3,finished,ann,2026-11-13T09:00:00.000Z,0.003,conv,3,4999,3.10,3.301
"""
MLFLOW = """run_id,status,metrics.dev_acc,metrics.test_acc,params.model,params.lr,params.seed,tags.name
1a,FINISHED,0.870,0.866,gru,0.001,0,gru-0
1b,FINISHED,0.855,0.851,gru,0.001,1,gru-1
1c,FINISHED,0.866,0.862,gru,0.001,2,gru-2
2a,FINISHED,0.862,0.860,lstm,0.001,0,lstm-0
2b,FAILED,,,lstm,0.001,1,lstm-1
2c,FINISHED,0.864,0.861,lstm,0.001,2,lstm-2
3a,FINISHED,0.881,0.888,mamba,0.001,0,mamba-0
3b,FINISHED,0.877,0.884,mamba,0.001,1,mamba-1
3c,FINISHED,0.880,0.889,mamba,0.001,2,mamba-2
"""
RAY = """val_loss,done,training_iteration,trial_id,config/arm,config/lr,config/seed
1.916,True,20,b_0,small,0.001,0
1.907,True,20,b_1,small,0.001,1
1.900,True,20,b_2,small,0.001,2
1.879,True,20,c_0,big,0.01,0
1.881,True,20,c_1,big,0.01,1
1.871,True,20,c_2,big,0.01,2
1.881,True,20,d_0,huge,0.1,0
nan,True,7,d_1,huge,0.1,1
1.883,True,20,d_2,huge,0.1,2
"""
OPTUNA = "number,value,params_lr,params_mixer,state\n" + "".join(
    f"{at},{1.40 + 0.001 * (at * 7 % 11)},{0.001 * (1 + at)},{'attn' if at % 2 else 'conv'},COMPLETE\n"
    for at in range(8)
)
WIDE = """model,seed 0,seed 1,seed 2,seed 3,mean
base,71.31,71.27,70.57,71.07,71.06
+norm,72.88,72.18,72.07,73.09,72.56
"""
CEILING = "mixer,seed,accuracy\n" + "".join(
    f"{mixer},{seed},{value}\n"
    for mixer, values in {"conv": (1, 1, 1), "attn": (1, 1, 1), "mlp": (0.5, 0.51, 0.48)}.items()
    for seed, value in enumerate(values)
)
SUMMARY = "method,val_bpb,std,n\nbase,0.7180,0.0006,5\nfused,0.7189,0.00054,6\nsmear,0.7162,0.0007,5\n"
SEVERAL = "arch,data,seed,val_bpb,CORE,params\n" + "".join(
    f"{arch},{data},{seed},"
    f"{0.72 - 0.004 * (arch == 'd24') - 0.01 * (data == 'climb') + 1e-4 * (7 * seed % 3)},"
    f"{0.263 + 0.001 * (seed * 5 % 4)},{1_384_122_368}\n"
    for arch in ("d24", "d22")
    for data in ("fine", "climb")
    for seed in range(4)
)


def judged(folder: Path, runs: str, /, **options: Any) -> activemem.JudgedRuns:
    """Judge the runs of a CSV file."""
    path = folder / "runs.csv"
    path.write_text(runs)
    return activemem.judge(path, **options)


def values_of(text: str, metric: str, **levels: str) -> list[float]:
    """Return the values of a metric in the rows of a CSV with these levels."""
    header, *lines = text.splitlines()
    rows = [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]
    found = [row for row in rows if all(row[name] == level for name, level in levels.items())]
    return [float(row[metric]) for row in found if row[metric] and row.get("State") != "running"]


def only(results: Sequence[ClaimResult]) -> ClaimResult:
    (found,) = results
    return found


def check_interval(found: ClaimResult, interval: Sequence[float], effect: float) -> None:
    one = found.deciding
    assert one.interval is not None
    assert one.effect == pytest.approx(effect)
    assert one.interval == pytest.approx(tuple(interval))


def larger_t(groups: Sequence[Sequence[float]], weights: Sequence[float]) -> tuple[float, float, float]:
    """Return the effect, its error and its degrees of freedom: pooled, or Welch's where that is larger."""
    degrees = sum(len(each) - 1 for each in groups)
    variance = sum((len(each) - 1) * float(stats.tstd(each)) ** 2 for each in groups) / degrees
    used = [(weight, each) for weight, each in zip(weights, groups, strict=True) if weight]
    own = [weight**2 * float(stats.tstd(each)) ** 2 / len(each) for weight, each in used]
    pooled = variance * sum(weight**2 / len(each) for weight, each in used)
    effect = sum(weight * sum(each) / len(each) for weight, each in used)
    if sum(own) <= pooled:
        return effect, math.sqrt(pooled), degrees
    welch = sum(own) ** 2 / sum(part**2 / (len(each) - 1) for part, (_, each) in zip(own, used, strict=True))
    return effect, math.sqrt(sum(own)), welch


PLAIN, TUNED, TILTED = (values_of(GOLF, "val_bpb", record=each) for each in ("plain", "tuned", "tilted"))


@pytest.mark.parametrize(
    ("claim", "weights", "shift", "verdict"),
    [
        ("val_bpb[record=tuned] < val_bpb[record=plain]", (-1, 1, 0), 0.0, "confirmed"),
        ("val_bpb[record=tuned] > val_bpb[record=plain]", (-1, 1, 0), 0.0, "refuted"),
        ("val_bpb[record=tuned] < val_bpb[record=plain] - 0.005", (-1, 1, 0), 0.005, "confirmed"),
        ("val_bpb[record=tuned] + 0.009 < val_bpb[record=plain]", (-1, 1, 0), 0.009, "undecided"),
        ("val_bpb[record=plain] - val_bpb[record=tuned] > 0.005", (1, -1, 0), -0.005, "confirmed"),
        ("val_bpb[record=plain] - val_bpb[record=tuned] - 0.005 > 0", (1, -1, 0), -0.005, "confirmed"),
        ("val_bpb[record=tilted] within 0.002 of val_bpb[record=plain]", (-1, 0, 1), None, "confirmed"),
        (
            "mean(val_bpb[record=plain], val_bpb[record=tilted]) > val_bpb[record=tuned]",
            (0.5, -1, 0.5),
            0.0,
            "confirmed",
        ),
    ],
)
def test_each_form_of_a_claim_is_tested_as_by_hand(
    tmp_path: Path, claim: str, weights: Sequence[float], shift: float | None, verdict: str
) -> None:
    found = only(judged(tmp_path, GOLF, claims=claim).check_claims())
    effect, error, degrees = larger_t((PLAIN, TUNED, TILTED), weights)
    one, half = found.deciding, stats.t.ppf(0.975, degrees) * error
    assert found.verdict == verdict
    assert one.degrees == pytest.approx(degrees)
    assert one.interval is not None
    assert one.interval[1] - one.interval[0] == pytest.approx(2 * half)
    distance = 0.002 - abs(effect) if shift is None else abs(effect + shift)
    assert one.p == pytest.approx(2 * float(stats.t.sf(distance / error, degrees)), rel=1e-6)


def test_a_number_on_the_right_is_tested_with_the_cell_alone(tmp_path: Path) -> None:
    found = only(judged(tmp_path, GOLF, claims="val_bpb[record=plain] < 1.08").check_claims())
    assert found.deciding.p == pytest.approx(float(stats.ttest_1samp(PLAIN, 1.08).pvalue))


def test_seeds_are_not_paired_unless_that_is_declared(tmp_path: Path) -> None:
    claim = "val_loss[mixer=both] < val_loss[mixer=attn]"
    attn, both = (values_of(WANDB, "val/loss", mixer=each) for each in ("attn", "both"))
    apart = only(judged(tmp_path, WANDB, failed="left-out", claims=claim).check_claims())
    assert apart.deciding.groups == (3, 4)
    found = judged(tmp_path, WANDB, failed="left-out", pair="seed", claims=claim)
    together = only(found.check_claims())
    expected = stats.ttest_rel(both, attn[:3])
    assert (together.deciding.groups, together.deciding.n) == ((), 3)
    assert together.deciding.effect == pytest.approx(sum(both) / 3 - sum(attn[:3]) / 3)
    alone = judged(
        tmp_path,
        WANDB,
        failed="left-out",
        pair="seed",
        text=f"""[[claim]]
name = "alone"\nholds = "{claim}"\ntest = "t"\n""",
    )
    assert only(alone.check_claims()).deciding.p == pytest.approx(float(expected.pvalue))
    assert "paired by seed" in found.claims_text()


def test_a_run_that_failed_leaves_a_claim_undecided_unless_it_is_declared(tmp_path: Path) -> None:
    claim = "val_loss[mixer=both] < val_loss[mixer=attn]"
    found = judged(tmp_path, WANDB, claims=claim)
    result = only(found.check_claims())
    assert result.verdict == "undecided"
    assert [str(each) for each in result.deciding.gaps] == ["mixer=both: 1 of 4 runs not finished (running)"]
    assert "1 of 4 failed" in str(found.table())
    assert (
        only(judged(tmp_path, WANDB, failed="left-out", claims=claim).check_claims()).verdict == "confirmed"
    )
    assert any("2 of 12 runs left out" in each for each in judged(tmp_path, WANDB, failed="left-out").notes)


def test_columns_of_mlflow_are_factors_and_metrics_by_their_prefix(tmp_path: Path) -> None:
    claim = "test_acc[model=mamba] > test_acc[model=gru]"
    found = judged(tmp_path, MLFLOW, metrics={"metrics.test_acc": "higher"}, claims=claim)
    assert found.runs.settings.factors == ("params.model",)
    groups = [
        values_of(MLFLOW, "metrics.test_acc", **{"params.model": each}) for each in ("mamba", "gru", "lstm")
    ]
    effect, _, _ = larger_t(groups, (1, -1, 0))
    welch = stats.ttest_ind(groups[0], groups[1], equal_var=False)
    check_interval(only(found.check_claims()), welch.confidence_interval(), effect)
    with pytest.raises(ActivememError, match=r"metrics\.dev_acc or metrics\.test_acc"):
        judged(tmp_path, MLFLOW)


def test_a_diverged_run_is_worse_than_any_other_and_never_left_out(tmp_path: Path) -> None:
    claims = ["val_loss[arm=big] < val_loss[arm=small]", "val_loss[arm=huge] < val_loss[arm=small]"]
    found = judged(tmp_path, RAY, failed="left-out", claims=claims)
    big, huge = found.check_claims()
    expected = stats.ttest_ind(
        values_of(RAY, "val_loss", **{"config/arm": "big"}),
        values_of(RAY, "val_loss", **{"config/arm": "small"}),
    )
    assert big.verdict == "confirmed"
    assert big.deciding.p is not None
    assert big.deciding.p <= 2 * float(expected.pvalue)
    assert (huge.verdict, huge.deciding.test) == ("undecided", "wilcoxon")
    table = found.table()
    assert [row[0].best for row in table.cells] == [False, True, False]
    assert "1 of 3 diverged" in table.cells[2][0].text
    assert "No factor of its own: config/lr, which follows config/arm." in found.notes


def test_ranks_decide_where_runs_diverged_as_by_mann_and_whitney(tmp_path: Path) -> None:
    good, bad = (1.0, 1.1, 1.2, 1.3, 1.15), (2.0, 2.1, math.inf, math.inf, 2.2)
    rows = [{"arm": arm, "loss": value} for arm, each in (("a", good), ("b", bad)) for value in each]
    found = only(activemem.judge(rows, claims="loss[arm=a] < loss[arm=b]").check_claims())
    assert found.verdict == "confirmed"
    assert found.deciding.p == pytest.approx(
        float(stats.mannwhitneyu(good, bad, method="exact").pvalue), rel=0.5
    )
    assert found.deciding.interval is None


def test_values_at_a_bound_cannot_be_told_apart_by_more_runs(tmp_path: Path) -> None:
    claims = ["accuracy[mixer=conv] > accuracy[mixer=attn]", "accuracy[mixer=mlp] < accuracy[mixer=conv]"]
    found = judged(tmp_path, CEILING, claims=claims)
    tie, worse = found.check_claims()
    assert (tie.verdict, tie.deciding.at_bound, worse.verdict) == ("undecided", True, "confirmed")
    text = found.claims_text()
    assert "more runs do not help" in text
    assert "run more seeds" not in text
    assert [row[0].best for row in found.table().cells] == [True, True, False]


def test_a_column_a_seed_is_one_metric_and_its_mean_no_seed(tmp_path: Path) -> None:
    found = judged(tmp_path, WIDE, metrics={"acc": "higher"}, claims="acc[model=+norm] > acc[model=base]")
    base, norm = (list(map(float, line.split(",")[1:5])) for line in WIDE.splitlines()[1:])
    expected = stats.ttest_ind(norm, base)
    check_interval(only(found.check_claims()), expected.confidence_interval(), sum(norm) / 4 - sum(base) / 4)
    assert "Mean is derived, and left out." in found.notes


@pytest.mark.parametrize("metric", ["{metric}", "val_loss"])
def test_the_last_step_of_each_curve_counts(tmp_path: Path, metric: str) -> None:
    ends = {"relu": (2.31, 2.33, 2.32), "relu2": (2.28, 2.29, 2.27)}
    for arm, values in ends.items():
        for seed, value in enumerate(values):
            lines = ["Wall time,Step,Value", "1.0,0,5.3", "2.0,50,1.9", f"3.0,100,{value}"]
            (tmp_path / f"run-{arm}_seed{seed}-tag-val_loss.csv").write_text("\n".join(lines))
    claim = "val_loss[arm=relu2] < val_loss[arm=relu]"
    named = {} if "{" in metric else {"metrics": {"val_loss": "lower"}}
    pattern = tmp_path / f"run-{{arm}}_seed{{seed}}-tag-{metric}.csv"
    found = only(activemem.judge(pattern, claims=claim, **named).check_claims())
    expected = stats.ttest_ind(ends["relu2"], ends["relu"])
    check_interval(found, expected.confidence_interval(), 2.28 - 2.32)
    (tmp_path / "run-relu_seed0-tag-val_loss.csv").write_text("Wall time,Step,Value\n1.0,0,5.3\n2.0,50,1.9")
    stopped = only(activemem.judge(pattern, claims=claim, **named).check_claims())
    assert stopped.verdict == "undecided"
    assert "stopped at step 50 of 100" in str(stopped.deciding.gaps[0])


CHART = """Step,attn-0 - loss,attn-0 - loss__MIN,attn-0 - loss__MAX,attn-1 - loss,conv-0 - loss,conv-1 - loss
0,5,5,5,5,5,5
100,3.2,3.2,3.2,3.3,3.6,3.7
"""


STEPS = (0, 50, 100)


def course(arm: str, seed: int, steps: Sequence[int] = STEPS) -> str:
    return "".join(f"{arm},{seed},{step},{3 - 0.01 * step + 0.1 * seed}\n" for step in steps)


def test_learning_curves_are_drawn_at_the_steps_that_all_runs_of_a_cell_have(tmp_path: Path) -> None:
    lines = [course("a", 0), course("a", 1, (0, 50, 75, 100)), course("b", 0), course("b", 1)]
    header, options = (
        "arm,seed,step,loss\n",
        {"form": "curves", "factors": "arm", "metrics": {"loss": "lower"}},
    )
    found = judged(tmp_path, header + "".join(lines), **options)
    (bar, line) = found.curves()
    assert (bar.name, line.name) == ("loss", "loss-steps")
    points = {each.name: each.points for panel in line.panels for each in panel.content.lines}
    assert {name: [point.x for point in each] for name, each in points.items()} == {
        "a": [*STEPS],
        "b": [*STEPS],
    }
    assert [point.y for point in points["a"]] == pytest.approx([3.05, 2.55, 2.05])
    assert "mean of 2 runs" in " ".join(line.notes)
    assert "judged, not trained here" in line.render("svg").decode()
    apart = header + course("a", 0) + course("a", 1, (1, 51, 100)) + course("b", 0) + course("b", 1)
    with pytest.raises(ActivememError, match="no two steps in common, so their curves have no mean"):
        judged(tmp_path, apart, **options).curves()
    for x, told in (("epoch", 'over x = "step", not "epoch"'), ("step", "final values, and no curves")):
        text = f'[[curve]]\nname = "c"\nkind = "line"\nx = "{x}"\nseries = "arm"\nvalue = "loss"\n'
        runs, more = (
            (header + "".join(lines), options)
            if x == "epoch"
            else ("arm,seed,loss\na,0,1\na,1,2\nb,0,3\n", {"factors": "arm"})
        )
        with pytest.raises(ActivememError, match=told):
            judged(tmp_path, runs, **more, text=text)


TUNED_RATES = "arm,lr,seed,test/acc,val/loss\n" + "".join(
    f"{arm},{lr},{seed},{acc + 0.01 * (seed * 2 % 3)},{loss + 0.01 * (seed * 2 % 3)}\n"
    for (arm, lr), (acc, loss) in {
        ("a", 0.1): (0.70, 1.2),
        ("a", 0.2): (0.80, 1.1),
        ("b", 0.1): (0.60, 1.3),
        ("b", 0.2): (0.90, 1.4),
    }.items()
    for seed in range(3)
)


def test_columns_stand_in_claims_as_they_are_written_and_a_level_is_picked_by_a_metric(
    tmp_path: Path,
) -> None:
    options = {
        "factors": ["arm", "lr"],
        "metrics": {"test/acc": "higher", "val/loss": "lower"},
        "over": "lr",
        "pick_by": "val/loss",
    }
    found = judged(tmp_path, TUNED_RATES, claims="test/acc[arm=a] > test/acc[arm=b]", **options)
    result = only(found.check_claims())
    assert result.verdict == "confirmed"
    best, other = (
        values_of(TUNED_RATES, "test/acc", arm=arm, lr=lr) for arm, lr in (("a", "0.2"), ("b", "0.1"))
    )
    assert result.deciding.p == pytest.approx(float(stats.ttest_ind(best, other).pvalue))
    plain = judged(tmp_path, TUNED_RATES, claims="test_acc[arm=a] > test_acc[arm=b]", **options)
    assert only(plain.check_claims()).deciding.p == result.deciding.p
    assert "best of 2 levels of lr by val/loss" in found.table().render("markdown")
    assert not any("In claims" in each for each in found.notes)
    again = tmp_path / "again.toml"
    again.write_text(found.text())
    assert only(activemem.judge(again).check_claims()).deciding.p == result.deciding.p
    with pytest.raises(ActivememError, match="over and pick_by need each other"):
        judged(tmp_path, TUNED_RATES, **{**options, "pick_by": None})
    with pytest.raises(ActivememError, match=r"unknown metric 'test/ac'; nearest: test/acc"):
        judged(tmp_path, TUNED_RATES, claims="test/ac[arm=a] > 0.5", **options)


@pytest.mark.parametrize("pair", ["none", "seed"])
def test_runs_that_are_not_paired_are_called_runs(tmp_path: Path, pair: str) -> None:
    runs = "arm,seed,loss\n" + "".join(
        f"{arm},{seed},{'nan' if (arm, seed) == ('b', 1) else start + 0.1 * (seed * 2 % 3)}\n"
        for arm, start in (("a", 1), ("b", 1.05), ("c", 3))
        for seed in range(3)
    )
    claims = ["loss[arm=a] < loss[arm=b]", "loss[arm=a] < loss[arm=c]"]
    found = judged(tmp_path, runs, pair=pair, claims=claims)
    told = " ".join((found.table().render("markdown"), found.claims_text(), *found.curve().notes))
    assert ("runs diverged" in told) == (pair == "none")
    assert ("seeds diverged" in told) == (pair == "seed")
    if pair == "none":
        words = told.replace("seed 1", "").replace("as seeds are not paired", "")
        assert "seed" not in words


def test_a_chart_of_wandb_is_read_by_the_names_of_its_runs(tmp_path: Path) -> None:
    found = judged(tmp_path, CHART, names="{mixer}-{seed}", claims="loss[mixer=attn] < loss[mixer=conv]")
    assert only(found.check_claims()).deciding.effect == pytest.approx(3.25 - 3.65)
    with pytest.raises(ActivememError, match="say what names of runs such as attn-0 mean"):
        judged(tmp_path, CHART)
    grouped = CHART.replace("3.2,3.2,3.2", "3.2,3.1,3.4")
    with pytest.raises(ActivememError, match="mean of a group of runs"):
        judged(tmp_path, grouped, names="{mixer}-{seed}")


def test_a_summary_is_tested_by_its_mean_spread_and_n(tmp_path: Path) -> None:
    text = (
        """[[claim]]\nname = "alone"\nholds = "val_bpb[method=fused] > val_bpb[method=base]"\ntest = "t"\n"""
    )
    found = judged(tmp_path, SUMMARY, baseline="base", text=text)
    welch = stats.ttest_ind_from_stats(0.7189, 0.00054, 6, 0.718, 0.0006, 5, equal_var=False)
    assert only(found.check_claims()).deciding.p == pytest.approx(float(welch.pvalue))
    fused, smear = (row[0] for row in found.table().cells[1:])
    smeared = stats.ttest_ind_from_stats(0.7162, 0.0007, 5, 0.718, 0.0006, 5, equal_var=False)
    assert smear.p == pytest.approx(holm_adjusted([fused.p or 1.0, float(smeared.pvalue)])[1])
    assert fused.estimate is not None
    assert (fused.estimate.value, fused.estimate.spread) == (pytest.approx(0.7189), pytest.approx(0.00054))
    assert "no run was seen" in " ".join(found.table().remarks)
    by_error = SUMMARY.replace("std", "se")
    with pytest.raises(ActivememError, match="--spread sd or --spread se"):
        judged(tmp_path, by_error)
    wide = judged(tmp_path, by_error, spread="se").table().cells[0][0].estimate
    assert wide is not None
    assert wide.spread == pytest.approx(0.0006 * math.sqrt(5))


def test_results_of_lm_eval_have_no_verdict_on_methods(tmp_path: Path) -> None:
    for model, acc in (("base", 0.512), ("mix", 0.539)):
        scores = {"alias": "hellaswag", "acc,none": acc, "acc_stderr,none": 0.005}
        page = {
            "results": {"hellaswag": scores, "winogrande": {**scores, "acc,none": acc - 0.01}},
            "higher_is_better": {"hellaswag": {"acc": True}, "winogrande": {"acc": True}},
            "model_name": model,
        }
        (tmp_path / f"{model}_results_2026.json").write_text(json.dumps(page))
    found = activemem.judge(
        tmp_path, claims="acc[model=mix, task=hellaswag] > acc[model=base, task=hellaswag]"
    )
    assert only(found.check_claims()).verdict == "undecided"
    assert "one run alone has no spread" in found.claims_text()
    table = found.table().render("markdown")
    assert "0.512 ± 0.005" in table  # shown, and said to be no error of trainings
    assert "± standard error of test items: it says nothing of other trainings" in table
    assert only(found.check_claims()).deciding.interval is None
    assert "nothing of other trainings" in " ".join(found.table().remarks)


def test_runs_without_a_pair_and_cells_that_no_claim_names_are_told(tmp_path: Path) -> None:
    found = judged(tmp_path, GOLF, pair="seed", claims="val_bpb[record=tuned] < val_bpb[record=plain]")
    result = only(found.check_claims())
    assert (result.verdict, result.deciding.n) == ("undecided", 1)
    text = " ".join(found.claims_text().split())
    assert "pairs: 5 runs without one of the same seed do not count" in text
    assert "Of 3 cells, 2 are compared" in text


def test_each_metric_has_a_verdict_of_its_own(tmp_path: Path) -> None:
    claims = [
        "val_bpb[arch=d22, data=fine] > val_bpb[arch=d24, data=fine]",
        "CORE[arch=d22, data=climb] within 0.01 of CORE[arch=d24, data=climb]",
    ]
    found = judged(tmp_path, SEVERAL, metrics={"val_bpb": "lower", "CORE": "higher"}, claims=claims)
    assert [each.verdict for each in found.check_claims()] == ["confirmed", "confirmed"]
    with pytest.raises(ActivememError, match="is a lower or a higher CORE better"):
        judged(tmp_path, SEVERAL, metrics=["val_bpb", "CORE"])


TWICE = GOLF + "plain,42,1.0702,15923358,599.5\n"
ONE_EACH = "arm,seed,loss\na,0,1.0\nb,0,1.1\nc,0,1.2\n"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (OPTUNA, {"metrics": {"value": "lower"}}, "the best of 8 was chosen by the very number"),
        (OPTUNA, {"metrics": {"value": "lower"}, "factors": "params_mixer"}, "the trials of a search"),
        (ONE_EACH, {"factors": "arm"}, "the best of 3 is a selection"),
        (TWICE, {}, "2 runs of record=plain with seed 42: which one counts"),
        (
            "arm,seed,score\na,0,1\na,1,2\nb,0,3\nb,1,4\n",
            {"metrics": "score"},
            "a lower or a higher score better",
        ),
        ("x,seed,loss\n1,0,1\n1,1,2\n2,0,3\n2,1,4\n", {}, "no column names what is compared"),
        (WIDE, {}, "are one metric without a name"),
        ("m,loss,std\na,1,0.1\nb,2,0.1\n", {}, "a summary without a column n"),
        (SUMMARY, {"pair": "seed"}, "cannot be paired"),
        (
            "arm,seed,step,loss\na,0,1,2\na,0,2,1\nb,0,1,2\nb,0,2,1\n",
            {},
            "and so in 1 more cell.*--form curves",
        ),
        (GOLF, {"factors": "recrod"}, "has no column recrod"),
        (GOLF, {"claims": "val_bpb[record=tuned] / val_bpb[record=plain] < 1"}, 'it needs pair = "seed"'),
        (GOLF, {"claims": "val_bpb[record=tunde] < 1"}, "tuned"),
        (GOLF, {"pair": "seeds"}, "pair"),
        (
            GOLF,
            {"text": '[[curve]]\nname = "c"\nkind = "scaling"\nx = "parameters"\nvalue = "val_bpb"\n'},
            "trained here",
        ),
        (GOLF, {"text": "[train]\nepochs = 1\n"}, "trains nothing"),
        (GOLF.replace("42,", ",", 1), {}, "1 run have no seed"),
    ],
)
def test_runs_that_allow_no_verdict_are_refused_in_a_sentence(
    tmp_path: Path, text: str, options: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(ActivememError, match=message):
        judged(tmp_path, text, **options).check_claims()


def test_a_number_of_tries_multiplies_p_and_stands_below_each_table(tmp_path: Path) -> None:
    claim = "val_bpb[record=tuned] < val_bpb[record=plain]"
    plain = judged(tmp_path, GOLF, claims=claim, baseline="plain")
    tried = judged(tmp_path, GOLF, claims=claim, baseline="plain", tries=12, planned=3)
    one, other = (only(each.check_claims()).deciding.p for each in (plain, tried))
    assert one is not None
    assert other == pytest.approx(12 * one)
    first, second = (each.table().cells[1][0].p for each in (plain, tried))
    assert first is not None
    assert second == pytest.approx(12 * first)
    assert "How many runs were made and not shown is unknown" in plain.table().render("latex")
    latex = tried.table().render("latex")
    assert "Chosen from 12 that were tried" in latex
    assert "Planned: 3 runs of each cell, and some cells have 4" in latex


def test_every_result_says_that_the_runs_were_not_trained_here(tmp_path: Path) -> None:
    found = judged(tmp_path, GOLF, claims="val_bpb[record=tuned] < val_bpb[record=plain]", baseline="plain")
    mark = found.runs.origin
    assert mark.startswith("judged, not trained here: runs.csv (sha256 ")
    for form in ("rich", "latex", "siunitx", "markdown", "html", "csv"):
        assert "judged, not trained here" in " ".join(found.table().render(form).split())
    assert mark in found.curve().provenance
    assert b"judged, not trained here" in found.curve().render("svg")
    assert [*found.table().frame()["origin"].unique()] == [f"10 runs · {mark}"]
    assert mark in found.claims["origin"][0]
    assert "Judged, not trained here" in str(found.check_claims()[0])


FIGURE = """[[curve]]\nname = "c"\nkind = "{kind}"\nx = "{x}"\nvalue = "val_bpb"\n{more}\n"""


@pytest.mark.parametrize(
    ("kind", "x", "more"),
    [
        ("bar", "arch", 'panels = "data"'),
        ("box", "arch", 'panels = "data"'),
        ("line", "depth", 'series = "data"'),
        ("heat", "arch", 'y = "data"'),
        ("pareto", "CORE", ""),
    ],
)
def test_figures_of_final_values_are_drawn(tmp_path: Path, kind: str, x: str, more: str) -> None:
    metrics = {"val_bpb": "lower", "CORE": "higher"}
    text = FIGURE.format(kind=kind, x=x, more=more)
    runs = SEVERAL.replace("d2", "2").replace("arch", "depth") if x == "depth" else SEVERAL
    found = judged(tmp_path, runs, factors=(runs[:5].strip(","), "data"), metrics=metrics, text=text).curve()
    assert b"judged, not trained here" in found.render("svg")
    course = FIGURE.format(kind="line", x="epoch", more='series = "data"\npanels = "arch"')
    with pytest.raises(ActivememError, match="runs have final values"):
        judged(tmp_path, SEVERAL, metrics=metrics, text=course)


def test_a_table_picks_levels_of_runs_by_a_metric(tmp_path: Path) -> None:
    text = """[[table]]\nname = "t"\nrows = "arch"\nvalue = "CORE"\nover = "data"\n"""
    metrics = {"val_bpb": "lower", "CORE": "higher"}
    found = judged(tmp_path, SEVERAL, metrics=metrics, text=f'{text}pick_by = "val_bpb"').table()
    assert [row[0].picked for row in found.cells] == ["data climb", "data climb"]
    with pytest.raises(
        ActivememError, match='a mean over levels is one of each seed: it needs pair = "seed"'
    ):
        judged(tmp_path, SEVERAL, metrics=metrics, text=text)


def test_judged_runs_never_enter_a_store(tmp_path: Path) -> None:
    found = judged(tmp_path, GOLF)
    with pytest.raises(ActivememError, match="never enter a store"):
        activemem.open_study(found.study, tmp_path / "results")
    with pytest.raises(ActivememError, match="never enter a store"):
        list(run_study(found.study, Store(tmp_path / "results")))
    path = tmp_path / "judge.toml"
    path.write_text(found.text())
    with pytest.raises(activemem.StudyError, match="activemem judge"):
        activemem.load_study(path)


def test_the_file_that_is_written_gives_the_same_verdicts(tmp_path: Path) -> None:
    options = {
        "claims": "val_loss[mixer=both] < val_loss[mixer=attn]",
        "failed": "left-out",
        "baseline": "attn",
    }
    found = judged(tmp_path, WANDB, **options)
    path = tmp_path / "judge.toml"
    path.write_text(found.text().replace(str(tmp_path / "runs.csv"), "runs.csv"))
    again = activemem.judge(path)
    assert again.table().cells == found.table().cells
    with pytest.raises(ActivememError, match=r"is a study file: set pair and tries there"):
        activemem.judge(path, pair="seed", tries=3)
    assert str(again.check_claims()[0]) == str(found.check_claims()[0])


def test_frames_of_any_library_and_lists_give_the_numbers_of_the_file(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    claim = "val_bpb[record=tuned] < val_bpb[record=plain]"
    expected = only(judged(tmp_path, GOLF, claims=claim).check_claims()).deciding.interval
    frame = pl.read_csv(tmp_path / "runs.csv")
    for source in (frame, frame.to_dicts(), frame.to_arrow(), pandas.read_csv(tmp_path / "runs.csv")):
        assert only(activemem.judge(source, claims=claim).check_claims()).deciding.interval == expected


def test_two_judgements_of_a_metric_of_one_name_keep_their_directions() -> None:
    rows = [{"arm": arm, "loss": value} for arm, each in (("a", (1, 2)), ("b", (3, 4))) for value in each]
    lower, higher = (activemem.judge(rows, metrics={"loss": better}) for better in ("lower", "higher"))
    assert (lower.table().columns, higher.table().columns) == (("loss ↓",), ("loss ↑",))
    assert activemem.judge(rows).table().columns == ("loss ↓",)


PICKED = """
[study]
name = "picked"
published = "theirs.csv"
[runs]
file = "runs.csv"
factors = ["mixer", "lr"]
seed = "seed"
{failed}
[runs.metrics.acc]
better = "higher"
[runs.metrics.val_loss]
better = "lower"
[[table]]
name = "best"
rows = "mixer"
value = "acc"
over = "lr"
pick_by = "val_loss"
[[claim]]
name = "b is ahead"
over = "lr"
pick_by = "val_loss"
holds = "acc[mixer=b] > acc[mixer=a]"
"""


@pytest.mark.parametrize(
    ("failed", "shown", "verdict"),
    [("", "failed", "undecided"), ('failed = "left-out"', "0.735", "confirmed")],
)
def test_no_level_is_picked_beside_a_failed_run_and_papers_numbers_stand_below(
    tmp_path: Path, failed: str, shown: str, verdict: str
) -> None:
    rows = ["mixer,lr,seed,state,acc,val_loss"]
    for mixer, low, high in (("a", 0.60, 0.70), ("b", 0.62, 0.735)):
        for seed in range(4):
            crashed = mixer == "b" and seed == 3
            shift = (seed - 1) / 1000
            rows.append(f"{mixer},0.001,{seed},finished,{low + shift:.4f},1.5")
            ended = f"finished,{high + shift * (seed < 3):.4f},1.1"
            rows.append(f"{mixer},0.003,{seed},{'crashed,,' if crashed else ended}")
    (tmp_path / "runs.csv").write_text("\n".join(rows), encoding="utf-8")
    theirs = "paper,table,row,column,value\nlee-2026,best,b,acc,0.731\n"
    (tmp_path / "theirs.csv").write_text(theirs, encoding="utf-8")
    (tmp_path / "judge.toml").write_text(PICKED.format(failed=failed), encoding="utf-8")
    found = activemem.judge(tmp_path / "judge.toml")
    cell = found.table().cells[1][0]
    assert cell.text.startswith(shown)
    assert cell.published is not None and cell.published.text == "0.731"
    assert [each.verdict for each in found.check_claims()] == [verdict]
