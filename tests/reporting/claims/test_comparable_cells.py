"""Claims with few seeds: the variance is pooled over all comparable cells by least squares."""

import numpy as np
import pytest
import scipy

from activemem.reporting import Verdict
from activemem.reporting.claims.check import check_claims
from activemem.reporting.claims.terminal import legend

from ...studies.claims.factories import STUDY_TEXT, make_outcomes, study_with_claims
from ...study_texts import study_text

MIXERS = ("sa", "conv(k=3)", "conv(k=20)", "sa + conv(k=3)")
BEATS = "max_length[task={0}, mixer=sa] > max_length[task={0}, mixer=conv(k=3)]"


def drawn(scale=1.0, seed=5):
    """Return lengths of all mixers on one task, with a common seed effect and independent noise."""
    rng = np.random.default_rng(seed)
    return 50 + rng.normal(0, 9, 3) + scale * rng.normal(0, 4, (len(MIXERS), 3))


def cells(table, task="reverse"):
    return {(mixer, task): tuple(row) for mixer, row in zip(MIXERS, table, strict=True)}


def decided(holds, found, **how):
    study = study_with_claims(holds, **how)
    return check_claims(study, make_outcomes(study, found))[0]


def residual(table):
    """Return the residual variance after cell and seed effects, and its degrees of freedom."""
    rows, units = (index.ravel() for index in np.indices(table.shape))
    design = np.concatenate([np.eye(len(table))[rows], np.eye(table.shape[1])[units]], axis=1)
    fitted = design @ np.linalg.lstsq(design, table.ravel(), rcond=None)[0]
    degrees = (len(table) - 1) * (table.shape[1] - 1)
    return ((table.ravel() - fitted) ** 2).sum() / degrees, degrees


def quiet_pair(table):
    """Return the same lengths with a nearly constant difference of the first two."""
    table[0] = table[1] + 12 + np.array([0.5, 0.0, -0.5])
    return table


def test_the_variance_of_all_mixers_on_the_task_decides():
    table = quiet_pair(drawn())
    variance, degrees = residual(table)
    one = decided(BEATS.format("reverse"), cells(table))
    error = np.sqrt(2 * variance / 3)
    low, high = one.deciding.interval
    assert degrees == 6
    assert (low, high) == pytest.approx(12 + np.array([-1, 1]) * scipy.stats.t.ppf(0.975, 6) * error)
    assert one.deciding.p == pytest.approx(2 * scipy.stats.t.sf(12 / error, 6))
    alone = decided(BEATS.format("reverse"), cells(table), test="t")
    assert alone.deciding.p == pytest.approx(scipy.stats.ttest_rel(table[0], table[1]).pvalue)


@pytest.mark.parametrize(("spread", "notes"), [(4.0, 0), (30.0, 1)])
def test_a_decided_claim_says_that_its_cells_vary_more_than_others(spread, notes):
    table = drawn()
    table[0] = table[1] + 200 + np.array([spread, 0.0, -spread])
    one = decided(BEATS.format("reverse"), cells(table))
    assert one.verdict is Verdict.CONFIRMED
    assert len(one.deciding.notes) == notes
    for note in one.deciding.notes:
        assert str(note).startswith("spread: other cells vary less")
    assert decided(BEATS.format("reverse"), cells(table), test="t").deciding.notes == ()


def test_an_open_claim_says_that_other_cells_widen_its_interval():
    table = quiet_pair(drawn(scale=9.0))
    one = decided(BEATS.format("reverse"), cells(table))
    own = np.std(table[0] - table[1], ddof=1)
    assert np.sqrt(2 * residual(table)[0]) > 3 * own
    assert one.verdict is Verdict.UNDECIDED
    (note,) = one.deciding.notes
    assert str(note).startswith("spread: other cells vary over 3")
    alone = decided(BEATS.format("reverse"), cells(table), test="t")
    assert (alone.verdict, alone.deciding.notes) == (Verdict.CONFIRMED, ())
    endless = table.copy()
    endless[0, 0] = np.inf
    assert decided(BEATS.format("reverse"), cells(endless)).verdict is Verdict.UNDECIDED
    even = drawn()
    even[0] = even[1] + np.array([9.0, 0.0, -9.0])
    assert decided(BEATS.format("reverse"), cells(even)).deciding.notes == ()


def test_a_comparison_that_varies_more_has_its_own_variance_and_fewer_degrees():
    table = drawn(scale=0.5)
    table[0] = table[1] + 12 + np.array([9.0, 0.0, -9.0])
    variance, degrees = residual(table)
    own = 81.0
    assert own > 2 * variance
    fewer = max(2.0, degrees * (2 * variance / own) ** 2)
    one = decided(BEATS.format("reverse"), cells(table))
    assert one.deciding.p == pytest.approx(2 * scipy.stats.t.sf(12 / np.sqrt(own / 3), fewer))


def test_cells_that_do_not_vary_are_not_pooled_and_other_tasks_neither():
    table = quiet_pair(drawn())
    table[3] = 7.0
    loud = cells(drawn(scale=30.0), "not")
    variance, degrees = residual(table[:3])
    one = decided(BEATS.format("reverse"), cells(table) | loud)
    assert one.deciding.p == pytest.approx(2 * scipy.stats.t.sf(12 / np.sqrt(2 * variance / 3), degrees))


def test_a_trial_of_several_cells_counts_once():
    mixers = ["sa", "conv(k={k})"]
    text = study_text(task={"name": "reverse"}, factors={"mixer": mixers, "k": [3, 5, 9], "seed": [0, 1, 2]})
    study = study_with_claims("max_length[mixer=sa, k=3] > max_length[mixer=conv(k={k}), k=5]", text=text)
    table = quiet_pair(drawn())
    rows = dict(zip([3, 5, 9], table[1:], strict=True))
    rows[5] = table[0] - 12
    found = {(mixer, k): tuple(table[0] if mixer == "sa" else rows[k]) for mixer in mixers for k in rows}
    outcomes = make_outcomes(study, found, by=("mixer", "k")).unique("trial")
    (one,) = check_claims(study, outcomes)
    variance, degrees = residual(np.array([table[0], *rows.values()]))
    assert (len(outcomes), one.deciding.degrees) == (12, degrees)
    assert one.deciding.p == pytest.approx(2 * scipy.stats.t.sf(12 / np.sqrt(2 * variance / 3), degrees))


def test_a_mean_over_tasks_has_the_sum_of_their_variances():
    first, second = quiet_pair(drawn(seed=1)), quiet_pair(drawn(scale=3.0, seed=2))
    holds = (
        "mean(max_length[task=t, mixer=sa] for t in [reverse, not])"
        " > mean(max_length[task=t, mixer=conv(k=3)] for t in [reverse, not])"
    )
    one = decided(holds, cells(first) | cells(second, "not"))
    parts = [2 * residual(table)[0] / 4 for table in (first, second)]  # halves of each
    degrees = int(sum(parts) ** 2 / sum(part**2 / 6 for part in parts))
    assert one.deciding.p == pytest.approx(2 * scipy.stats.t.sf(12 / np.sqrt(sum(parts) / 3), degrees))


@pytest.mark.parametrize(
    "holds",
    [
        "max_length[task=reverse, mixer=sa] > 40",
        "max_length[task=reverse, mixer=sa] == min(max_length[task=reverse, mixer=conv(k=3)], 40)",
        "max_length[task=reverse, mixer=sa] / max_length[task=reverse, mixer=conv(k=3)] > 1.1",
        "max_length[task=reverse, mixer=sa] > max_length[task=not, mixer=sa]",
    ],
)
def test_comparisons_across_tasks_are_not_pooled(holds):
    found = cells(quiet_pair(drawn())) | cells(drawn(), "not")
    pooled, alone = decided(holds, found), decided(holds, found, test="t")
    assert pooled.deciding == alone.deciding
    assert "Their variance is their own, and" in " ".join(legend([pooled]))
    told = " ".join(legend([pooled, decided(BEATS.format("reverse"), found)]))
    assert "Their variance is the larger of" in told
    assert "cannot be pooled" in told


def test_with_many_seeds_a_permutation_test_decides():
    text = STUDY_TEXT.replace("[0, 1, 2]", str(list(range(8))))
    found = {("sa", "reverse"): tuple(range(20, 28)), ("conv(k=3)", "reverse"): (9, 8, 9, 8, 9, 8, 9, 8)}
    one = decided(BEATS.format("reverse"), found, text=text)
    assert (one.verdict, one.deciding.p) == (Verdict.CONFIRMED, 2 / 2**8)
    strict = decided(BEATS.format("reverse"), found, text=text, level=0.999)
    assert strict.verdict is Verdict.CONFIRMED, "no permutation of 8 pairs reaches this level"
    assert strict.deciding.p < 0.001


def test_the_legend_names_the_degrees_of_freedom_of_the_pooled_tests_alone():
    table = drawn()
    pooled = decided(BEATS.format("reverse"), cells(table))
    alone = decided(BEATS.format("reverse"), cells(table), test="t")
    assert "(6 degrees of freedom)" in " ".join(legend([pooled, alone]))
    assert "degrees" not in " ".join(legend([alone]))


@pytest.mark.parametrize(
    ("design", "words", "degrees"),
    [
        ("grid", "all cells with the same task and the levels that both sides share", 4),
        ("one_at_a_time", "all cells with the same task, whatever their other levels", 6),
    ],
)
def test_the_legend_says_which_cells_give_the_variance(design, words, degrees):
    text = study_text(
        study={"design": design},
        model={"dropout": "{dropout}"},
        factors={
            "mixer": ["sa", "conv(k=3)", "conv(k=20)"],
            "dropout": [0.0, 0.1],
            "task": ["reverse"],
            "seed": [0, 1, 2],
        },
    )
    found = {("sa", "reverse"): (20, 22, 21), ("conv(k=3)", "reverse"): (9, 11, 11)}
    found["conv(k=20)", "reverse"] = (5, 15, 1)
    holds = "max_length[mixer=sa, dropout=0.0] > max_length[mixer=conv(k=3), dropout=0.0]"
    one = decided(holds, found, text=text)
    assert one.deciding.degrees == degrees
    assert f"that of {words} ({degrees} degrees of freedom)" in " ".join(legend([one]))
