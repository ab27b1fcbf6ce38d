"""Verdicts claim no more than the seeds show: hand-computed cases."""

import math
import random
import re
from collections import Counter
from itertools import combinations_with_replacement

import polars as pl
import pytest
import scipy

from activemem.reporting import Verdict
from activemem.reporting.claims.cell_values import printed_effect
from activemem.reporting.claims.check import check_claims
from activemem.reporting.claims.hypothesis_test import paired_test
from activemem.reporting.claims.terminal import claims_to_terminal, format_seeds, legend
from activemem.reporting.claims.verdicts import count_verdicts
from activemem.reporting.statistics.estimates import hochberg_threshold

from ...studies.claims.factories import STUDY_TEXT, make_outcomes, study_with_claims

CONFIRMED, REFUTED, UNDECIDED = Verdict.CONFIRMED, Verdict.REFUTED, Verdict.UNDECIDED
NOT_RUN = Verdict.NOT_RUN
T = 4.302652729911275  # of a two-sided interval at 95 % with 2 degrees of freedom
SA_BEATS_CONV = "max_length[task={0}, mixer=sa] > max_length[task={0}, mixer=conv(k=3)]"


def checked(holds, found, *, metric="max_length", **how):
    """Return the results of one claim for these outcomes."""
    study = study_with_claims(holds, **how)
    (one,) = check_claims(study, make_outcomes(study, found, metric=metric))
    return one


def pair(first, second, task="reverse"):
    return {("sa", task): first, ("conv(k=3)", task): second}


FITTED = """
[source]
model = "paper: x"
task = "paper: x"
train.batch_size = "paper: x"
train.epochs = "paper: x"
train.steps_per_epoch = "paper: x"
train.curriculum = "paper: x"
train.optimizer.name = "paper: x"
factors = "paper: x"
train.optimizer.lr = "fitted: max_length[mixer=sa, task=reverse], to 7"
"""


@pytest.mark.parametrize(
    ("holds", "values", "verdict", "text"),
    [
        (
            SA_BEATS_CONV.format("reverse"),
            ((40, 43, 43), (10, 11, 12)),
            Verdict.FITTED,
            "confirmed, lr fitted to it",
        ),
        (SA_BEATS_CONV.format("reverse"), ((10, 11, 12), (40, 43, 43)), REFUTED, "refuted, lr fitted to it"),
        (
            SA_BEATS_CONV.format("reverse"),
            ((10, 11, 12), (8, 16, 9)),
            UNDECIDED,
            "undecided, lr fitted to it",
        ),
        (SA_BEATS_CONV.format("reverse"), ((), ()), NOT_RUN, "not run"),
        ("max_length[task=reverse, mixer=conv(k=3)] > 7", ((), (40, 43, 43)), CONFIRMED, "confirmed"),
        (
            SA_BEATS_CONV.format("reverse").replace("max_length", "parameters"),
            ((), ()),
            CONFIRMED,
            "confirmed",
        ),
    ],
)
def test_a_claim_on_a_cell_to_which_a_setting_was_fitted_says_so(holds, values, verdict, text):
    one = checked(holds, pair(*values), text=STUDY_TEXT + FITTED)
    assert (one.verdict, one.verdict_text) == (verdict, text)


def test_a_claim_that_is_confirmed_by_a_fitted_setting_is_not_counted_among_the_confirmed():
    one = checked(SA_BEATS_CONV.format("reverse"), pair((40, 43, 43), (10, 11, 12)), text=STUDY_TEXT + FITTED)
    assert count_verdicts([one]) == "0 confirmed, 1 confirmed but fitted, 0 refuted, 0 undecided"
    assert any('"fitted to it"' in sentence for sentence in legend([one]))


def test_a_clear_difference_is_confirmed_with_effect_interval_p_and_n():
    one = checked(SA_BEATS_CONV.format("reverse"), pair((40, 43, 43), (10, 11, 12)))
    effect, error = 31.0, 1 / math.sqrt(3)  # of 30, 32 and 31
    assert (one.verdict, one.level, one.needed, len(one.findings)) == (CONFIRMED, 0.95, None, 1)
    found = one.deciding
    assert (found.effect, found.n, found.needed, found.gaps) == (effect, 3, None, ())
    assert found.interval == pytest.approx((effect - T * error, effect + T * error))
    assert found.p == pytest.approx(2 * scipy.stats.t.sf(effect / error, 2))


def test_the_same_difference_in_every_seed_counts_as_known_to_rounding_only():
    """The paper's 41 against 7 on addition, where lengths come in steps of 2."""
    one = checked(SA_BEATS_CONV.format("addition"), pair((41, 41, 41), (7, 7, 7), "addition"))
    half = T * math.sqrt(2 * 2**2 / 12) / math.sqrt(3)
    assert one.verdict is CONFIRMED
    assert one.deciding.interval == pytest.approx((34 - half, 34 + half))
    by_one = checked(SA_BEATS_CONV.format("addition"), pair((9, 9, 9), (7, 7, 7), "addition"))
    assert (by_one.verdict, by_one.needed) == (UNDECIDED, 4)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (pair((40, 41), (10, 12)), "Confirmed with 2 seeds: claim (+29.5 [23.1, 35.9])."),
        (pair((10, 12), (40, 41)), "Refuted with 2 seeds: claim (−29.5 [−35.9, −23.1])."),
        (pair((14, 14), (14, 14)), "Undecided with 2 seeds, within ±3.7: claim (0.0 [−3.7, 3.7])."),
        (pair((14,), (14,)), "Undecided with 1 seed: claim."),
    ],
    ids=["confirmed", "refuted", "undecided", "one seed"],
)
def test_a_result_is_one_sentence(found, sentence):
    one = checked(SA_BEATS_CONV.format("reverse"), found, overrides=["factors.seed=[0, 1]"])
    assert str(one) == sentence.replace("claim", one.spec.name)


@pytest.mark.parametrize(
    ("holds", "added", "tested_for"),
    [
        ("{sa} > {conv} + 2", 2.0, "tested for more than 2"),
        ("{sa} - 2 >= {conv}", 2.0, "tested for at least 2"),
        ("{sa} - {conv} > 2.5", 2.5, "tested for more than 2.5"),
        ("{sa} + 1 < {conv} - 1", -2.0, "tested for less than −2"),
        ("{sa} within 30 of {conv} + 2", 2.0, "tested for 2 ± 30"),
        ("{sa} > {conv}", 0.0, ""),
        ("{sa} within 2 of {conv}", 0.0, ""),
    ],
)
def test_a_margin_is_part_of_the_test_but_not_of_the_effect(holds, added, tested_for):
    cells = {name: f"max_length[task=reverse, mixer={name}]" for name in ("sa", "conv(k=3)")}
    holds = holds.format(sa=cells["sa"], conv=cells["conv(k=3)"])
    one = checked(holds, pair((40, 43, 43), (10, 11, 12)))
    found, error = one.deciding, 1 / math.sqrt(3)
    assert (found.effect, found.added, found.tested_for) == (31.0, added, tested_for)
    assert found.interval == pytest.approx((31 - T * error, 31 + T * error))
    assert str(one).endswith(f"[28.5, 33.5]{tested_for and ', '}{tested_for}).")
    if one.verdict is CONFIRMED and ">" in holds:
        plain = checked(SA_BEATS_CONV.format("reverse"), pair((40, 43, 43), (10, 11, 12)))
        assert (found.p > plain.deciding.p) == bool(added)


def test_a_number_that_a_metric_is_compared_with_is_no_margin():
    one = checked("max_length[task=reverse, mixer=sa] > 2", pair((40, 43, 43), ()))
    assert (one.deciding.effect, one.deciding.added) == (40.0, 0.0)
    assert one.deciding.tested_for == "difference from 2"


def test_the_other_way_round_it_is_refuted():
    one = checked(SA_BEATS_CONV.format("reverse"), pair((10, 11, 12), (40, 43, 43)))
    assert (one.verdict, one.deciding.effect) == (REFUTED, -31.0)


def test_noise_is_undecided_and_it_is_said_how_many_seeds_would_do():
    one = checked(SA_BEATS_CONV.format("reverse"), pair((14, 9, 12), (10, 11, 10)))
    size = (4 / 3) / math.sqrt(28 / 3)  # of 4, −2 and 2
    assert one.verdict is UNDECIDED
    assert one.deciding.interval[0] < 0 < one.deciding.interval[1]

    def power(n):
        return scipy.stats.nct.sf(scipy.stats.t.ppf(0.975, n - 1), n - 1, size * math.sqrt(n))

    assert power(one.needed) >= 0.8 > power(one.needed - 1)
    tied = checked(SA_BEATS_CONV.format("reverse"), pair((14, 9, 12), (14, 9, 12)))
    assert (tied.verdict, tied.needed, tied.deciding.p) == (UNDECIDED, None, 1.0)


def test_one_seed_decides_nothing_and_two_little():
    alone = checked(SA_BEATS_CONV.format("reverse"), pair((40,), (10,)), overrides=["factors.seed=[0]"])
    assert (alone.verdict, alone.deciding.interval, alone.deciding.n) == (UNDECIDED, None, 1)
    assert (alone.deciding.p, alone.needed) == (None, None)
    two = pair((40, 41), (10, 12))
    assert (
        checked(SA_BEATS_CONV.format("reverse"), two, overrides=["factors.seed=[0, 1]"]).verdict is CONFIRMED
    )
    two = pair((15, 17), (10, 11))
    assert (
        checked(SA_BEATS_CONV.format("reverse"), two, overrides=["factors.seed=[0, 1]"]).verdict is UNDECIDED
    )


@pytest.mark.parametrize(
    "end",
    [
        None,
        "failed: disk is full at epoch 8\nand more",
        "pruned: behind the others",
        math.nan,
    ],
)
def test_missing_trials_leave_a_claim_undecided_and_are_reported(end, golden):
    one = checked(SA_BEATS_CONV.format("reverse"), pair((40, 41, end), (10, 11, 10)))
    assert (one.verdict, one.needed, one.deciding.p) == (UNDECIDED, None, None)
    assert (one.deciding.effect, one.deciding.n) == (30.0, 2)
    (gap,) = one.deciding.gaps
    assert gap.where == "mixer=sa, task=reverse"
    golden(gap.what)


def test_a_claim_without_any_trial_has_not_run():
    both = f"{SA_BEATS_CONV.format('reverse')} and {SA_BEATS_CONV.format('not')}"
    one = checked(both, {})
    assert (one.verdict, one.deciding.verdict, one.deciding.n) == (NOT_RUN, NOT_RUN, 0)
    assert str(one) == f"Not run: {one.spec.name}."
    begun = checked(both, pair((40, 41, 42), (10, 11, 10)))
    assert begun.verdict is UNDECIDED
    assert {each.verdict for each in begun.findings} == {CONFIRMED, NOT_RUN}
    assert begun.deciding_parts == "undecided part: not"
    assert one.deciding_parts == ""  # it is all of them


@pytest.mark.parametrize(
    ("ran", "verdict"),
    [
        (pair((40, 41, 42), ()), NOT_RUN),
        (pair((), (10, 11, 10)), NOT_RUN),
        (pair((40,), (10,)), UNDECIDED),
        (pair((40,), ("failed: disk is full",)), UNDECIDED),
    ],
    ids=["no right side", "no left side", "a pair", "a pair of which one failed"],
)
def test_a_comparison_without_a_pair_of_trials_has_not_run(ran, verdict):
    one = checked(SA_BEATS_CONV.format("reverse"), ran)
    assert (one.verdict, one.deciding.verdict) == (verdict, verdict)


def test_parameters_are_compared_before_anything_is_trained():
    one = checked("parameters[mixer=sa, task=not] < parameters[mixer=conv(k=3), task=not]", {})
    assert (one.verdict, one.deciding.n, one.deciding.gaps) == (REFUTED, 3, ())


def test_a_diverged_seed_counts_as_the_worst_and_is_named(golden):
    holds = "loss[mixer=sa, task=reverse] < loss[mixer=conv(k=3), task=reverse]"
    study = study_with_claims(holds)
    outcomes = make_outcomes(study, pair((1.0, 1.1, 1.2), (2.0, 2.1, 0.4)), metric="loss")
    strayed = (pl.col("seed") == 2) & (pl.col("parameters") == len("conv(k=3)"))
    rose = pl.when(strayed).then(pl.lit("rose from 0.3 to 0.4")).alias("diverged")
    (as_it_is,) = check_claims(study, outcomes)
    (one,) = check_claims(study, outcomes.with_columns(rose))
    assert as_it_is.deciding.effect == pytest.approx(-0.4)
    assert one.deciding.effect == -math.inf
    assert (one.deciding.n, one.deciding.gaps) == (3, ())
    (note,) = one.deciding.notes
    golden(note.what)


def test_a_small_study_judges_the_claims_of_its_paper_in_small():
    found = pair((40, 43, 43), (10, 11, 12))
    text = STUDY_TEXT.replace("[study]\n", "[study]\nsmall = true\n")
    of_paper = checked(SA_BEATS_CONV.format("reverse"), found, text=text, source="Table 4")
    own = checked(SA_BEATS_CONV.format("reverse"), found, text=text)
    assert (of_paper.verdict, of_paper.verdict_text) == (CONFIRMED, f"{CONFIRMED} at small size")
    assert own.verdict_text == "confirmed"
    undecided = checked(SA_BEATS_CONV.format("reverse"), {}, text=text, source="Table 4")
    assert undecided.verdict_text == "not run"


def test_every_place_that_prints_a_verdict_of_a_small_study_says_so(golden):
    found = pair((10, 11, 12), (40, 43, 43))
    text = STUDY_TEXT.replace("[study]\n", "[study]\nsmall = true\n")
    holds = f"{SA_BEATS_CONV.format('reverse')} and {SA_BEATS_CONV.format('not')}"
    small = checked(holds, found, text=text, source="Table 4")
    golden(str(small))
    golden(count_verdicts([small]))
    full = checked(SA_BEATS_CONV.format("reverse"), found)
    golden(count_verdicts([full, small, small], " · "))
    shown = claims_to_terminal([small], legend([small]))
    assert shown.count("at small size") == shown.count("refuted") == 3


@pytest.mark.parametrize(
    "found",
    [
        pair((14,), (14,)),
        pair((14, 14), (14, 14)),
        pair((14, 18, 13), (14, 14, 14)),
        pair((14, 17, 12), (14, 14, 14)),
        pair((40, 41), (10, 12)),
    ],
    ids=["one seed", "no difference", "few more", "too many more", "decided"],
)
def test_an_undecided_claim_says_what_more_seeds_would_do(found, golden):
    seeds = list(range(len(next(iter(found.values())))))
    one = checked(SA_BEATS_CONV.format("reverse"), found, overrides=[f"factors.seed={seeds}"])
    golden([format_seeds(one.deciding, one.seeds, one.needed), str(one)])


def test_a_printed_effect_is_computed_from_the_printed_numbers():
    study = study_with_claims(
        "mean(max_length[task=reverse, mixer=m] for m in mixer) - max_length[task=not, mixer=sa] > 2"
        " and max_length[task=reverse, mixer=sa] / max_length[task=not, mixer=sa] > 1"
    )
    first, second = study.claims[0].comparisons
    printed = {
        ("max_length", trial.cell): 41.0 if trial.levels["task"] == "reverse" else 8.0
        for trial in study.cells
    }
    assert printed_effect(first, printed) == 33.0
    assert printed_effect(second, printed) == pytest.approx(41 / 8 - 1)
    assert printed_effect(first, {}) is None


def test_a_part_that_is_refuted_refutes_all_whatever_is_missing_elsewhere():
    holds = f"{SA_BEATS_CONV.format('reverse')} and {SA_BEATS_CONV.format('not')}"
    one = checked(holds, pair((10, 11, 12), (40, 43, 43)))
    assert one.verdict is REFUTED
    assert [each.verdict for each in one.findings] == [REFUTED, NOT_RUN]
    assert one.deciding is one.findings[0]
    assert "; refuted part: reverse (−31.0 " in str(one)
    assert one.level == pytest.approx(1 - 0.05 / 2)  # it pays for having been one of two
    assert one.findings[0].p == pytest.approx(2 * 2 * scipy.stats.t.sf(31 * math.sqrt(3), 2))


def test_all_is_confirmed_where_each_part_would_be_and_hangs_on_the_least_sure():
    found = pair((20, 20, 21), (10, 15, 12)) | pair((20, 20, 21), (10, 11, 12), "not")
    one = checked(f"{SA_BEATS_CONV.format('reverse')} and {SA_BEATS_CONV.format('not')}", found)
    least = scipy.stats.ttest_1samp([10, 5, 9], 0).pvalue
    assert 0.025 < least < 0.05  # Holm would leave both undecided
    assert (one.verdict, one.level) == (CONFIRMED, 0.95)
    assert (one.deciding, one.deciding.p) == (one.findings[0], pytest.approx(least))


def test_any_is_confirmed_by_one_part_at_the_price_of_all_and_refuted_by_every_one():
    holds = f"{SA_BEATS_CONV.format('reverse')} or {SA_BEATS_CONV.format('not')}"
    sure, unsure, against = (
        ((40, 43, 43), (10, 11, 12)),
        ((14, 9, 12), (10, 11, 10)),
        ((7, 7, 8), (31, 30, 33)),
    )
    assert checked(holds, pair(*sure) | pair(*unsure, "not")).verdict is CONFIRMED
    assert checked(holds, pair(*unsure) | pair(*against, "not")).verdict is UNDECIDED
    one = checked(holds, pair(*against) | pair(*against, "not"))
    assert (one.verdict, one.level) == (REFUTED, 0.95)


def test_any_needs_the_fewest_seeds_of_its_parts_also_of_a_denied_one():
    found = {**pair((10, 12, 14), (13, 16, 15)), **pair((20, 30, 22), (21, 22, 21), "addition")}
    behind, ahead = map(SA_BEATS_CONV.format, ("reverse", "addition"))
    one = checked(f"any(not {behind}, {ahead})", found)
    assert (one.verdict, one.deciding.label, one.needed) == (UNDECIDED, "reverse", 6)
    assert [each.needed for each in one.findings] == [6, 33]


def test_not_turns_a_verdict_round():
    denied = f"not ({SA_BEATS_CONV.format('reverse')})"
    assert checked(denied, pair((40, 43, 43), (10, 11, 12))).verdict is REFUTED
    assert checked(denied, pair((10, 11, 12), (40, 43, 43))).verdict is CONFIRMED
    assert checked(denied, pair((14, 9, 12), (10, 11, 10))).verdict is UNDECIDED


@pytest.mark.parametrize(
    ("statement", "values", "verdict"),
    [
        (">= 104", (104, 104, 104), CONFIRMED),  # above 103, as lengths go by 1
        ("> 103", (104, 104, 104), CONFIRMED),
        ("> 104", (104, 104, 104), UNDECIDED),
        ("== 104", (104, 104, 104), CONFIRMED),
        ("!= 104", (104, 104, 104), REFUTED),
        ("== 104", (104, 104, 90), UNDECIDED),
        ("== 104", (60, 61, 60), REFUTED),
        ("!= 104", (60, 61, 60), CONFIRMED),
        ("<= 36", (36, 36, 36), CONFIRMED),
        ("<= 36", (50, 51, 50), REFUTED),
        ("within 2 of 50", (50, 51, 50), CONFIRMED),
        ("within 1 of 50", (50, 52, 49), UNDECIDED),
        ("within 2 of 50", (60, 61, 60), REFUTED),
        ("> 45 + 2", (50, 51, 50), CONFIRMED),
    ],
)
def test_a_comparison_with_a_number(statement, values, verdict):
    one = checked(f"max_length[task=not, mixer=sa] {statement}", {("sa", "not"): values})
    assert one.verdict is verdict


def test_sums_and_folds_are_taken_seed_by_seed():
    found = pair((40, 43, 43), (10, 11, 12)) | {("conv(k=20)", "reverse"): (12, 9, 10)}
    sa, three, twenty = (
        f"max_length[task=reverse, mixer={mixer}]" for mixer in ("sa", "conv(k=3)", "conv(k=20)")
    )
    for statement, effect in (
        (f"{sa} == max({three}, {twenty})", ((40 - 12) + (43 - 11) + (43 - 12)) / 3),
        (f"{sa} == min({three}, {twenty})", ((40 - 10) + (43 - 9) + (43 - 10)) / 3),
        (f"{sa} > mean({three}, {twenty})", ((40 - 11) + (43 - 10) + (43 - 11)) / 3),
        (f"{sa} - {three} > {twenty} + 1", ((40 - 10 - 12) + (43 - 11 - 9) + (43 - 12 - 10)) / 3),
        (f"{sa} / {three} > 1.5", (40 / 10 + 43 / 11 + 43 / 12) / 3 - 1.5),
    ):
        assert checked(statement, found).deciding.effect == pytest.approx(effect)


def test_rounding_adds_up_over_terms_and_shrinks_in_a_mean():
    def blur(statement):
        study = study_with_claims(statement)
        cells = {
            (mixer, task): (20, 20, 20) for mixer in study.factors["mixer"] for task in ("not", "reverse")
        }
        (one,) = check_claims(study, make_outcomes(study, cells))
        low, high = one.deciding.interval
        return (high - low) / 2 * math.sqrt(3) / T

    sa, conv = "max_length[task=not, mixer=sa]", "max_length[task=not, mixer=conv(k=3)]"
    assert blur(f"{sa} > 3") == pytest.approx(1 / math.sqrt(12))
    assert blur(f"{sa} - {conv} > 3 - {sa}") == pytest.approx(math.sqrt(3 / 12))
    assert blur(f"mean({sa}, {conv}) > 3") == pytest.approx(math.sqrt(2 / 12) / 2)
    assert blur(f"max({sa}, {conv}) > 3") == pytest.approx(1 / math.sqrt(12))
    assert blur(f"{sa} / {conv} > 3") == pytest.approx(math.sqrt(2 / 12) / 20)
    assert blur(f"({sa} + {conv}) / {conv} > 3") == pytest.approx(math.sqrt((2 + 2**2) / 12) / 20)


def test_equal_within_a_step_is_so_of_quotients_too():
    ratio = "max_length[task=reverse, mixer=sa] / max_length[task=reverse, mixer=conv(k=3)]"
    for other, verdict in (((20, 20, 20), CONFIRMED), ((40, 40, 40), REFUTED)):
        assert checked(f"{ratio} == 1", pair((20, 20, 20), other)).verdict is verdict


def test_a_division_by_zero_leaves_a_claim_undecided_and_is_reported(golden):
    ratio = "max_length[task=reverse, mixer=sa] / max_length[task=reverse, mixer=conv(k=3)]"
    one = checked(f"{ratio} > 1", pair((20, 20, 20), (4, 0, 5)))
    assert one.verdict is UNDECIDED
    golden([str(gap) for gap in one.deciding.gaps])


def test_a_permutation_or_a_wilcoxon_test_takes_six_seeds_at_least():
    clear = pair((40, 43, 43), (10, 11, 12))
    for test in ("permutation", "wilcoxon"):
        one = checked(SA_BEATS_CONV.format("reverse"), clear, test=test)
        assert (one.verdict, one.deciding.p, one.needed) == (UNDECIDED, 0.25, 6)
    six = pair((40, 43, 43, 41, 42, 40), (10, 11, 12, 10, 11, 12))
    how = {"text": STUDY_TEXT.replace("[0, 1, 2]", "[0, 1, 2, 3, 4, 5]"), "test": "permutation"}
    one = checked(SA_BEATS_CONV.format("reverse"), six, **how)
    assert (one.verdict, one.deciding.p) == (CONFIRMED, 2 / 64)
    assert checked("max_length[task=reverse, mixer=sa] within 5 of 41", six, **how).verdict is CONFIRMED


def test_ranks_decide_which_side_is_ahead_where_a_claim_sets_their_test():
    ahead = (10, 11, 12, 9, 13, 8, 14, 7, 15, 6, 16)  # and the last seed collapses
    found = pair((*(100 + each for each in ahead), 0), (100,) * 12)
    text = STUDY_TEXT.replace("[0, 1, 2]", str(list(range(12))))
    one = checked(SA_BEATS_CONV.format("reverse"), found, text=text, test="wilcoxon")
    assert (one.verdict, one.deciding.effect) == (CONFIRMED, 10.5)
    assert one.deciding.p == pytest.approx(scipy.stats.wilcoxon((*ahead, -100)).pvalue)
    low, high = one.deciding.interval
    assert 0 < low < 10.5 < high
    assert checked(SA_BEATS_CONV.format("reverse"), found, text=text, test="t").deciding.effect < 2


def test_equal_cells_are_seldom_told_apart_by_a_maximum():
    chance, rounds, wrong = random.Random(0), 30, Counter()
    mixers = ("sa", "conv(k=3)", "conv(k=20)", "sa + conv(k=3)")
    over = " for m in mixer except [sa])"
    holds = (
        f"max(max_length[task=not, mixer=m]{over} > max_length[task=not, mixer=sa]",
        f"max_length[task=not, mixer=sa] < max(max_length[task=not, mixer=m]{over}",
        f"max_length[task=not, mixer=sa] > min(max_length[task=not, mixer=m]{over}",
    )
    study = study_with_claims(*holds, text=STUDY_TEXT.replace("[0, 1, 2]", str(list(range(6)))))
    for _ in range(rounds):
        found = {(mixer, "not"): tuple(chance.gauss(50, 3) for _ in range(6)) for mixer in mixers}
        wrong.update(each.verdict for each in check_claims(study, make_outcomes(study, found)))
    assert wrong[CONFIRMED] + wrong[REFUTED] <= 3 * rounds * 0.1


LISTED = [("any", "all", 3), ("all", "all", 15), ("all", "any", 3)]


@pytest.mark.parametrize(("inner", "outer", "count"), LISTED)
def test_of_many_comparisons_those_are_listed_that_decide_a_part(inner, outer, count):
    parts = ", ".join(f"max_length[task=t, mixer=sa] > {number}" for number in range(1, 6))
    holds = f"{outer}({inner}({parts}) for t in [reverse, not, addition])"
    found = {("sa", task): (20, 21, 22) for task in ("reverse", "not", "addition")}
    one = checked(holds, found)
    assert (one.verdict, len(one.findings)) == (CONFIRMED, 15)
    assert sum(each.decides_part for each in one.findings) == count
    text = claims_to_terminal([one], legend([one]))
    assert text.count("p < ") + text.count("p = ") == count + 1
    assert (f"listed: the {count} of 15 comparisons" in " ".join(text.split())) == (count < 15)


def test_a_stricter_level_takes_more():
    found = pair((20, 20, 21), (10, 14, 12))
    assert checked(SA_BEATS_CONV.format("reverse"), found).verdict is CONFIRMED
    one = checked(SA_BEATS_CONV.format("reverse"), found, level=0.99)
    assert (one.verdict, one.level) == (UNDECIDED, 0.99)


def test_computed_costs_need_no_second_seed():
    holds = "parameters[task=not, mixer={}] < parameters[task=not, mixer=conv(k=3)]"
    found = pair((1,), (1,), "not")
    one = checked(holds.format("sa"), found, overrides=["factors.seed=[0]"])
    assert (one.verdict, one.deciding.effect, one.deciding.interval) == (CONFIRMED, -7.0, (-7.0, -7.0))
    found[("sa + conv(k=3)", "not")] = (1,)
    assert checked(holds.format("sa + conv(k=3)"), found, overrides=["factors.seed=[0]"]).verdict is REFUTED


def test_a_metric_with_an_index_has_its_last_value():
    lengths = ["task.test_lengths=[5, 11]"]
    holds = "test_loss[5, task=not, mixer=sa] > test_loss[11, task=not, mixer=sa]"
    study = study_with_claims(holds, overrides=lengths)
    rows = make_outcomes(study, {("sa", "not"): (1, 1, 1)})
    long = [
        {"trial": trial, "step": step, "name": f"test_loss[{index}]", "value": value + number / 10}
        for number, trial in enumerate(rows["trial"])
        for step, index, value in ((9, "5", 30.0), (4, "5", 1.0), (9, "11", 20.0))
    ]
    (one,) = check_claims(study, rows, pl.DataFrame(long))
    assert (one.verdict, one.deciding.effect) == (CONFIRMED, pytest.approx(10.0))


def test_levels_that_an_override_has_taken_away_leave_claims_undecided(golden):
    study = study_with_claims(
        "best(max_length[task=not]) is sa",
        "max_length[task=not, mixer=conv(k=3)] > 3",
        "all(max_length[task=not, mixer=m] > 3 for m in mixer except [sa])",
        overrides=['factors.mixer=["sa"]'],
    )
    found = check_claims(study, make_outcomes(study, {("sa", "not"): (9, 9, 9)}))
    assert [each.verdict for each in found] == [UNDECIDED] * 3
    (gone,) = {str(each.deciding.gaps[0]) for each in found}
    golden(gone)


def test_levels_that_are_left_can_decide_a_claim_that_names_one_that_is_gone():
    holds = "{}(max_length[mixer=sa, task=t] > 5 for t in [not, reverse, addition])"
    study = study_with_claims(
        holds.format("all"), holds.format("any"), overrides=['factors.task=["not", "reverse"]']
    )
    outcomes = make_outcomes(study, {("sa", "not"): (9, 9, 9), ("sa", "reverse"): (1, 1, 1)})
    found = check_claims(study, outcomes)
    assert [(each.verdict, len(each.findings)) for each in found] == [(REFUTED, 3), (CONFIRMED, 3)]


def test_a_claim_of_every_level_is_of_those_that_an_override_gives():
    study = study_with_claims(
        "all(max_length[mixer=m, task=not] > 5 for m in mixer)",
        overrides=['factors.mixer=["sa", "conv(k=9)"]'],
    )
    outcomes = make_outcomes(study, {("sa", "not"): (9, 9, 9), ("conv(k=9)", "not"): (9, 9, 9)})
    (found,) = check_claims(study, outcomes)
    assert (found.verdict, len(found.findings)) == (CONFIRMED, 2)


def test_a_cell_that_is_another_under_a_second_name_has_its_trials():
    text = STUDY_TEXT.replace('"sa + conv(k=3)"]', '"sa + conv(k=3)", "conv(k=3) + sa(heads={h})"]\nh = [8]')
    study = study_with_claims(
        "max_length[task=not, mixer='conv(k=3) + sa(heads={h})'] within 2 of"
        " max_length[task=not, mixer='sa + conv(k=3)']",
        text=text,
    )
    one = check_claims(study, make_outcomes(study, {("sa + conv(k=3)", "not"): (9, 12, 9)}).unique("trial"))[
        0
    ]
    assert (one.verdict, one.deciding.effect) == (CONFIRMED, 0.0)


@pytest.mark.parametrize("family", [1, 8])
def test_where_nothing_is_true_a_claim_says_something_wrong_in_no_more_than_five_of_a_hundred(family):
    chance, wrong, rounds = random.Random(0), 0, 2000
    for _ in range(rounds):
        tried = [
            paired_test(
                differences={seed: chance.gauss(0, 1) for seed in range(3)},
                region=(0.0, math.inf),
                rounding=0.0,
                test="t",
                complete=True,
            )
            for _ in range(family)
        ]
        p_values = [each.p for each in tried]
        wrong += min(p_values) <= hochberg_threshold(p_values, 0.05)
    assert wrong / rounds < 0.05 + 3 * math.sqrt(0.05 * 0.95 / rounds)


def test_the_legend_says_if_a_permutation_test_replaced_the_interval():
    told = "paired permutation test"
    few = checked(SA_BEATS_CONV.format("reverse"), pair((40, 43, 43), (10, 11, 12)))
    assert told not in " ".join(legend([few]))
    text = STUDY_TEXT.replace("seed = [0, 1, 2]", "seed = [0, 1, 2, 3, 4, 5, 6, 7]")
    ends = tuple(range(40, 48))
    many = checked(SA_BEATS_CONV.format("reverse"), pair(ends, tuple(range(8))), text=text)
    assert many.deciding.p == 2 * 0.5**8
    assert told in " ".join(legend([many]))


LESS_LOSS = "loss[task=reverse, mixer=sa] < loss[task=reverse, mixer=conv(k=3)]"


def of_losses(first, second):
    """Return the claim that the first losses are lower, with one seed for each of them."""
    text = STUDY_TEXT.replace("[0, 1, 2]", str(list(range(len(first)))))
    return checked(LESS_LOSS, pair(first, second), metric="loss", text=text)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_fewer_than_six_infinite_losses_decide_nothing(count):
    ahead = of_losses((1,) * count, (math.inf,) * count)
    assert (ahead.verdict, ahead.deciding.effect, ahead.deciding.interval) == (UNDECIDED, -math.inf, None)
    assert (ahead.deciding.p, ahead.deciding.test, ahead.needed) == (2 * 0.5**count, "wilcoxon", 6)


def test_an_infinite_loss_is_worse_than_every_other_one_and_ties_with_another_infinite_one():
    ahead, behind = of_losses((1,) * 6, (math.inf,) * 6), of_losses((math.inf,) * 6, (1,) * 6)
    assert (ahead.verdict, ahead.deciding.effect, ahead.deciding.p) == (CONFIRMED, -math.inf, 2 / 64)
    assert (behind.verdict, behind.deciding.effect, behind.deciding.p) == (REFUTED, math.inf, 2 / 64)
    both = of_losses((math.inf,) * 6, (math.inf,) * 6)
    assert (both.verdict, both.deciding.effect, both.deciding.p) == (UNDECIDED, None, 1)
    tied = of_losses((1, 1, 1, 1, 1, math.inf), (2, 2, 2, 2, 2, math.inf))
    assert (tied.verdict, tied.deciding.effect, tied.deciding.p) == (UNDECIDED, -1.0, 2 / 2**5)


def test_nothing_is_advised_where_both_sides_diverged_with_every_seed():
    both = of_losses((math.inf,) * 2, (math.inf,) * 2)
    assert "run more seeds" not in str(both)
    assert "0.000" not in str(both)
    assert both.deciding.effect_text == ""


def infinite_test(differences, region=(-math.inf, 0.0), test="pooled"):
    return paired_test(
        differences=dict(enumerate(differences)), region=region, rounding=0.0, test=test, complete=True
    )


@pytest.mark.parametrize("test", ["pooled", "t", "permutation", "wilcoxon"])
def test_two_diverged_seeds_are_two_seeds_whatever_the_test(test):
    for sign in (1, -1):
        both = infinite_test([sign * math.inf] * 2, test=test)
        assert (both.p, both.effect, both.interval(0.95)) == (2 / 4, sign * math.inf, None)
    assert infinite_test([math.inf, -math.inf], test=test).p == 1


@pytest.mark.parametrize(
    ("agreeing", "patterns", "decides"),
    [(9, 43, False), (10, 55, False), (11, 70, True), (12, 88, True)],
)
def test_one_diverged_seed_has_the_largest_rank_among_those_that_agree(agreeing, patterns, decides):
    """Of the subsets of the ranks 1 to n, so many have a sum of at most n, the rank of the diverged one."""
    one = infinite_test([*(-0.1 * each for each in range(1, agreeing + 1)), math.inf])
    assert one.p == 2 * patterns / 2 ** (agreeing + 1)
    assert (one.p <= 0.05) == decides
    assert one.inside
    low, high = one.interval(0.95)
    assert low < one.effect < high
    assert math.isinf(high) != decides  # the interval is without an end on the side of the diverged seed


def test_a_claim_on_losses_with_one_diverged_seed_is_confirmed_by_enough_others():
    sa = (1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0, math.inf)
    conv = (2.0, 2.2, 2.4, 2.6, 2.8, 3.0, 3.2, 3.4, 3.6, 3.8, 4.0, 1.0)
    one = of_losses(sa, conv)
    assert (one.verdict, one.deciding.p, one.deciding.test) == (CONFIRMED, 140 / 4096, "wilcoxon")
    differences = [one - other for one, other in zip(sa, conv, strict=True)]
    averages = sorted(sum(two) / 2 for two in combinations_with_replacement(differences, 2))
    assert one.deciding.effect == pytest.approx((averages[38] + averages[39]) / 2)  # of 12 · 13 / 2 = 78
    # 13 is the largest sum that at most 2.5 % of the patterns stay below or at
    assert one.deciding.interval == pytest.approx((averages[13], averages[-14]))
    assert "Wilcoxon signed-rank test" in " ".join(legend([one]))


def test_a_maximum_is_settled_by_a_level_that_nothing_can_exceed():
    parts = [f"accuracy[task=reverse, mixer={mixer}]" for mixer in ("sa", "conv(k=3)")]
    found = pair((1.0, 1.0, 1.0), (0.5,))
    for holds in (f"max({', '.join(parts)}) == 1", f"max({', '.join(reversed(parts))}) >= 1"):
        one = checked(holds, found, metric="accuracy")
        assert (one.verdict, one.deciding.n, one.deciding.gaps) == (CONFIRMED, 3, ())
    for function in ("min", "mean"):
        one = checked(f"{function}({', '.join(parts)}) == 1", found, metric="accuracy")
        assert (one.verdict, one.deciding.n) == (UNDECIDED, 1)
        assert [gap.what for gap in one.deciding.gaps] == ["2 of 3 seeds not run"]
    part = checked(f"max({', '.join(parts)}) == 1", pair((1.0, 0.999, 1.0), ()), metric="accuracy")
    assert (part.verdict, part.deciding.n) == (UNDECIDED, 2)
    assert [gap.what for gap in part.deciding.gaps] == ["3 of 3 seeds not run"]


def test_a_minimum_is_settled_by_a_level_that_nothing_can_undercut():
    parts = [f"accuracy[task=reverse, mixer={mixer}]" for mixer in ("sa", "conv(k=3)")]
    one = checked(f"min({', '.join(parts)}) <= 0.5", pair((0, 0, 0), (None, 0.9, 0.8)), metric="accuracy")
    assert (one.verdict, one.deciding.n, one.deciding.effect) == (CONFIRMED, 3, -0.5)


TOP = STUDY_TEXT.replace("epochs = 2", "epochs = 6")


@pytest.mark.parametrize(
    ("task", "top"),
    [("not", 10), ("addition", 15)],  # from 5 by 1 or by 2, five times in six epochs
)
def test_a_ceiling_is_reached_without_a_test_if_all_trials_are_at_it(task, top):
    assert "epochs = 6" in TOP
    text = TOP.replace("[study]\n", "[study]\nmax_seeds = 12\n")
    one = checked(f"max_length[task={task}, mixer=sa] >= {top}", {("sa", task): (top,) * 3}, text=text)
    found = one.deciding
    assert one.verdict is CONFIRMED
    assert found.p is found.test is found.interval is found.needed is None
    (note,) = found.notes
    assert re.search(r"\b3 .*largest possible", note.what)
    for values in ((top, top, top - 1), (top, top, None), (top, top, "failed: no")):
        other = checked(f"max_length[task={task}, mixer=sa] >= {top}", {("sa", task): values}, text=text)
        assert other.verdict is UNDECIDED
        assert "largest possible" not in " ".join(map(str, other.deciding.notes))


@pytest.mark.parametrize(
    ("statement", "verdict"),
    [
        ("== 1", CONFIRMED),
        (">= 1", CONFIRMED),
        ("!= 1", REFUTED),
        ("> 1", UNDECIDED),
        ("< 1", UNDECIDED),
        (">= accuracy[task=not, mixer=conv(k=3)]", CONFIRMED),
        ("== accuracy[task=not, mixer=conv(k=3)]", CONFIRMED),
        ("< accuracy[task=not, mixer=conv(k=3)]", UNDECIDED),
    ],
)
def test_values_at_a_bound_are_equal_and_more_seeds_tell_them_no_further_apart(statement, verdict):
    found = pair((1.0,) * 3, (1.0,) * 3, "not")
    one = checked(f"accuracy[task=not, mixer=sa] {statement}", found, metric="accuracy")
    assert (one.verdict, one.needed, one.deciding.p, one.deciding.interval) == (verdict, None, None, None)
    (note,) = one.deciding.notes
    assert "largest possible value" in note.what
    assert ("may show a difference" in note.what) == (verdict is UNDECIDED)
    assert ("more seeds do not help" in str(one)) == (verdict is UNDECIDED)
    assert not re.search("run more|would do|within ±", str(one))


UNTRAINED = Verdict.UNTRAINED


@pytest.mark.parametrize(
    ("holds", "sa", "conv", "verdict"),
    [
        ("sa > conv", (0.52, 0.51, 0.52), (0.47, 0.46, 0.47), UNTRAINED),
        ("sa < conv", (0.52, 0.51, 0.52), (0.47, 0.46, 0.47), UNTRAINED),
        ("not sa > conv", (0.52, 0.51, 0.52), (0.47, 0.46, 0.47), UNTRAINED),
        ("sa > conv", (0.92, 0.91, 0.92), (0.47, 0.46, 0.47), CONFIRMED),
        ("sa > conv", (0.52, 0.51, 0.53), (0.47, 0.46, 0.47), CONFIRMED),  # one seed has learnt
        ("sa > 0.5", (0.52, 0.51, 0.52), (), UNTRAINED),
        ("sa < 0.8", (0.52, 0.51, 0.52), (), CONFIRMED),  # that it has not learnt is what is claimed
        ("sa > conv", (), (), NOT_RUN),
        ("sa > conv", (0.52,), (), NOT_RUN),
    ],
)
def test_a_claim_that_compares_only_guesses_is_untrained(holds, sa, conv, verdict):
    for name in ("sa", "conv"):
        holds = holds.replace(name, f"accuracy[task=not, mixer={'conv(k=3)' if name == 'conv' else name}]")
    one = checked(holds, pair(sa, conv, "not"), metric="accuracy")
    assert (one.verdict, one.needed) == (verdict, one.needed if verdict in (CONFIRMED, NOT_RUN) else None)


def test_a_part_without_training_neither_confirms_nor_refutes_a_claim():
    holds = f"{SA_BEATS_CONV.format('reverse')} {{}} {SA_BEATS_CONV.format('not')}"
    clear, guessed = pair((40, 43, 43), (10, 11, 12)), pair((0, 0, 0), (0, 0, 0), "not")
    against = pair((10, 11, 12), (40, 43, 43))
    assert checked(holds.format("and"), clear | guessed).verdict is UNTRAINED
    assert checked(holds.format("or"), clear | guessed).verdict is CONFIRMED
    assert checked(holds.format("and"), against | guessed).verdict is REFUTED
    assert checked(holds.format("or"), against | guessed).verdict is UNTRAINED
    one = checked(holds.format("and"), pair((14, 9, 12), (10, 11, 10)) | guessed)
    assert one.verdict is UNDECIDED
    assert [each.verdict for each in one.findings] == [UNDECIDED, UNTRAINED]


def test_a_cell_that_has_learnt_nothing_is_named_beside_one_that_has():
    one = checked(SA_BEATS_CONV.format("reverse"), pair((40, 43, 43), (0, 0, 0)))
    assert one.verdict is CONFIRMED
    assert [str(note) for note in one.deciding.notes] == [
        "mixer=conv(k=3), task=reverse: not learnt, no better than a guess"
    ]


def test_untrained_claims_are_explained_and_counted_apart(golden):
    one = checked(SA_BEATS_CONV.format("not"), pair((0, 0, 0), (0, 0, 0), "not"))
    golden(claims_to_terminal([one], legend([one])))
    assert count_verdicts([one]) == "0 confirmed, 0 refuted, 1 untrained, 0 undecided"


def test_a_bound_below_is_as_good_as_one_above_and_a_diverged_seed_is_at_none():
    holds = "accuracy[task=addition, mixer=sa] == 0"
    study = study_with_claims(holds)
    outcomes = make_outcomes(study, {("sa", "addition"): (0, 0, 0)}, metric="accuracy")
    (one,) = check_claims(study, outcomes)
    assert (one.verdict, one.deciding.test) == (CONFIRMED, None)
    rose = pl.when(pl.col("seed") == 2).then(pl.lit("rose from 0.3 to 0.4")).alias("diverged")
    (strayed,) = check_claims(study, outcomes.with_columns(rose))
    assert strayed.deciding.test == "wilcoxon"
