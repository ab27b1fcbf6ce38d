"""Added seeds for claims: repeated tests of growing data, and the next additions."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from activemem import load_study
from activemem.reporting import Verdict
from activemem.reporting.added_seeds import next_seeds
from activemem.reporting.claims.check import check_claims
from activemem.reporting.claims.hypothesis_test import paired_test
from activemem.reporting.statistics.look_levels import look_level, p_over_looks

from ...studies.claims.factories import STUDY_TEXT, make_outcomes, study_with_claims
from ...study_texts import study_text

CONFIRMED, REFUTED, UNDECIDED = Verdict.CONFIRMED, Verdict.REFUTED, Verdict.UNDECIDED
GROWING = STUDY_TEXT.replace("[study]\n", "[study]\nmax_seeds = 8\n")
BEATS = "max_length[task={0}, mixer={1}] > max_length[task={0}, mixer={2}]"
CLOSE = {"sa": (20, 24, 19), "conv(k=3)": (18, 17, 20)}
LEVEL = look_level((3, 5, 8), 0.05)


def grown(*claims, found, text=GROWING, **keys):
    """Return a study with claims that may add seeds, and outcomes by mixer, by default on reverse."""
    study = study_with_claims(*claims, text=text, **keys)
    cells = {key if isinstance(key, tuple) else (key, "reverse"): ends for key, ends in found.items()}
    return study, make_outcomes(study.with_later_seeds(), cells)


def checked(*claims, found):
    study, outcomes = grown(*claims, found=found)
    return check_claims(study.with_later_seeds(), outcomes)


def test_a_study_that_may_add_seeds_judges_each_look_at_a_stricter_level():
    found = {"sa": (20, 20, 21), "conv(k=3)": (10, 14, 12)}
    (one,) = checked(BEATS.format("reverse", "sa", "conv(k=3)"), found=found)
    assert one.looks == (3, 5, 8)
    assert one.level_of_look == one.level == pytest.approx(1 - LEVEL)
    plain = study_with_claims(BEATS.format("reverse", "sa", "conv(k=3)"))
    (same,) = check_claims(
        plain, make_outcomes(plain, {(mixer, "reverse"): ends for mixer, ends in found.items()})
    )
    assert (same.looks, same.level) == ((3,), 0.95)
    assert one.deciding.p == pytest.approx(p_over_looks((3, 5, 8), same.deciding.p))


def test_several_comparisons_share_the_level_of_all_looks():
    part = BEATS.format("reverse", "sa", "conv(k=3)")
    other = BEATS.format("reverse", "sa", "conv(k=20)")
    found = {"sa": (20, 21, 20), "conv(k=3)": (10, 11, 10), "conv(k=20)": (20, 20, 21)}
    (one,) = checked(f"{part} or {other}", found=found)
    assert one.verdict is CONFIRMED
    assert one.level == pytest.approx(1 - look_level((3, 5, 8), 0.05 / 2))
    assert one.level > 1 - LEVEL / 2  # half of the level of a look would be wrong in more than 5 %


def test_the_first_look_that_decides_counts_whatever_comes_later():
    sure = {"sa": [40, 43, 41], "conv(k=3)": [10, 11, 12]}
    later = {mixer: [*ends, 20, 20] for mixer, ends in sure.items()}
    for found in (sure, later):
        (one,) = checked(BEATS.format("reverse", "sa", "conv(k=3)"), found=found)
        assert (one.verdict, one.deciding.n) == (CONFIRMED, 3)
        error = stats.sem([30, 32, 29])  # of the three seeds, whatever those after them say
        assert one.deciding.p == pytest.approx(p_over_looks((3, 5, 8), 2 * stats.t.sf((91 / 3) / error, 2)))
    late = {"sa": (20, 24, 19, 22, 23), "conv(k=3)": (18, 17, 20, 11, 12)}
    (one,) = checked(BEATS.format("reverse", "sa", "conv(k=3)"), found=late)
    assert one.deciding.n == 5
    (one,) = checked(
        BEATS.format("reverse", "sa", "conv(k=3)"), found={**late, "conv(k=3)": (18, 17, 20, 11)}
    )
    assert (one.verdict, one.deciding.n) == (UNDECIDED, 3)  # the look is not yet complete


def test_values_at_a_bound_need_no_seeds_and_an_added_seed_below_it_brings_the_test_back():
    top = "max_length[task=reverse, mixer=sa] >= 6"  # from 5 on, in two epochs
    for ends in ((6, 6, 6), (6, 6, 6, 6, 6)):
        (one,) = checked(top, found={"sa": ends})
        assert (one.verdict, one.deciding.n, one.deciding.test) == (CONFIRMED, len(ends), None)
    (one,) = checked(top, found={"sa": (6, 6, 6, 6, 0)})
    assert (one.verdict, one.deciding.n, one.deciding.test) == (UNDECIDED, 5, "t")
    both = {"sa": (6, 6, 6), "conv(k=3)": (6, 6, 6)}
    study, outcomes = grown(BEATS.format("reverse", "sa", "conv(k=3)"), found=both)
    assert next_seeds(study, outcomes, None) is None


def test_an_added_seed_that_failed_is_reported_and_leaves_its_claim_undecided():
    ends = {"sa": (40, 43, 41, 42, "failed: no"), "conv(k=3)": (10, 11, 12, 10, 11)}
    study, outcomes = grown(BEATS.format("reverse", "sa", "conv(k=3)"), found=ends)
    (one,) = check_claims(study.with_later_seeds(), outcomes)
    assert one.verdict is UNDECIDED
    assert [str(gap) for gap in one.deciding.gaps] == ["mixer=sa, task=reverse: 1 of 5 seeds failed: no"]
    assert next_seeds(study, outcomes, None) is None


def test_a_baseline_that_failed_for_all_its_seeds_confirms_no_claim():
    ends = {"sa": range(40, 48), "conv(k=3)": ["failed: out of memory"] * 8}
    (one,) = checked(BEATS.format("reverse", "sa", "conv(k=3)"), found=ends)
    assert one.verdict is UNDECIDED


def test_the_next_seeds_are_added_to_the_cells_of_an_undecided_claim():
    study, outcomes = grown(
        BEATS.format("reverse", "sa", "conv(k=3)"),
        BEATS.format("reverse", "sa", "conv(k=20)"),
        found={**CLOSE, "conv(k=20)": (1, 2, 1)},
    )
    assert [each.verdict for each in check_claims(study.with_later_seeds(), outcomes)] == [
        UNDECIDED,
        CONFIRMED,
    ]
    found = next_seeds(study, outcomes, None)
    assert (found.name, found.seeds) == ("0", 5)
    assert {(trial.levels["mixer"], trial.settings.seed) for trial in found.trials} == {
        (mixer, seed) for mixer in ("sa", "conv(k=3)") for seed in (3, 4)
    }
    assert found.seconds == 4.0  # a second each, as those in the store
    assert 0 < found.chance < 1
    assert next_seeds(study, outcomes, None, seconds=3.0) is None


def test_the_claim_that_is_decided_in_the_fewest_hours_comes_first():
    study, outcomes = grown(
        BEATS.format("reverse", "sa", "conv(k=3)"),
        BEATS.format("not", "sa", "conv(k=3)"),
        found={**CLOSE, ("sa", "not"): (21, 25, 22), ("conv(k=3)", "not"): (16, 17, 20)},
    )
    assert next_seeds(study, outcomes, None).name == "1"
    one_of_two = (
        f"{BEATS.format('reverse', 'sa', 'conv(k=3)')} and {BEATS.format('reverse', 'conv(k=20)', 'sa')}"
    )
    study, outcomes = grown(one_of_two, found={**CLOSE, "conv(k=20)": (17, 18, 18)})
    found = next_seeds(study, outcomes, None)
    assert {trial.levels["mixer"] for trial in found.trials} == {"sa", "conv(k=20)"}  # likely to refute it


def test_nothing_is_added_where_nothing_would_be_decided():
    tied = {"sa": (20, 30, 20), "conv(k=3)": (30, 20, 20)}
    assert next_seeds(*grown("max_length[task=reverse, mixer=sa] > 500", found=tied), None) is None
    assert (
        next_seeds(*grown(BEATS.format("reverse", "sa", "conv(k=3)"), found={"sa": (20, 30)}), None) is None
    )
    study = study_with_claims(BEATS.format("reverse", "sa", "conv(k=3)"))
    outcomes = make_outcomes(study, {(mixer, "reverse"): ends for mixer, ends in CLOSE.items()})
    assert next_seeds(study, outcomes, None) is None


@pytest.mark.parametrize("test", ["permutation", "wilcoxon"])
def test_five_seeds_never_decide_a_test_of_ranks_or_signs(test):
    sure = {"sa": (40, 43, 41), "conv(k=3)": (10, 11, 12)}
    found = next_seeds(*grown(BEATS.format("reverse", "sa", "conv(k=3)"), found=sure, test=test), None)
    assert (found.seeds, found.seeds_at_decision) == (5, 8)
    assert found.chance > 0.99


def test_claims_of_one_seed_get_a_second_as_one_has_no_spread():
    text = GROWING.replace("seed = [0, 1, 2]", "seed = [0]")
    claim = f"{BEATS.format('reverse', 'sa', 'conv(k=3)')} and {BEATS.format('not', 'sa', 'conv(k=3)')}"
    ends = {(mixer, task): (20,) for mixer in CLOSE for task in ("reverse", "not")}
    study, outcomes = grown(claim, found={**ends, ("sa", "not"): (40,)}, text=text)
    found = next_seeds(study, outcomes, None)
    assert (found.seeds, len(found.trials), found.seconds, found.chance) == (2, 4, 4.0, None)
    two = {cell: (*values, values[0] + place) for place, (cell, values) in enumerate(ends.items())}
    study, outcomes = grown(claim, found=two, text=text)
    later = next_seeds(study, outcomes, None)
    assert later is None or later.chance > 0


def test_trained_models_that_await_a_probe_are_not_trained_again():
    claim = "beam_tuned[task=reverse, mixer=sa] > beam_tuned[task=reverse, mixer=conv(k=3)]"
    study = study_with_claims(claim, text=GROWING)
    found = {(mixer, "reverse"): (*ends, 1, 1) for mixer, ends in CLOSE.items()}
    outcomes = make_outcomes(study.with_later_seeds(), found, metric="beam_tuned")
    begun = outcomes.filter(pl.col("seed") < 3)
    assert {trial.settings.seed for trial in next_seeds(study, begun, None).trials} == {3, 4}
    added = pl.col("seed") >= 3
    probed = pl.when(added).then(pl.col("metrics").list.head(0)).otherwise("metrics")
    task = pl.when(added).then(pl.lit("translation")).otherwise("task")
    assert next_seeds(study, outcomes.with_columns(metrics=probed, task=task), None) is None


@pytest.mark.parametrize(
    ("keys", "factors", "cells"),
    [
        ({"design": "one_at_a_time"}, {"norm": ["pre", "post"]}, []),
        ({"design": "one_at_a_time", "around": "mixer"}, {"norm": ["pre", "post"]}, []),
        ({"match": "parameters", "baseline": {"mixer": "sa", "filter": 64}}, {"norm": ["pre"]}, []),
        ({}, {"norm": ["pre", "post"]}, [{"mixer": "sa", "norm": "post"}]),
    ],
)
def test_every_cell_of_every_design_has_its_later_seeds(keys, factors, cells):
    size = "{filter}" if "match" in keys else 8
    text = study_text(
        study={"max_seeds": 8, **keys},
        model={"recipe": f"2 * ({{mixer}} >> ff({size}))", "norm": "{norm}"},
        factors={"mixer": ["sa", "conv(k=3)"], "task": ["reverse"], **factors, "seed": [0, 1, 2]},
        cells=[{"task": "reverse", **each} for each in cells],
    )
    study = load_study(text)
    grown = study.with_later_seeds()
    places = {}
    for trial in grown.cells:
        key = tuple((name, level) for name, level in trial.levels.items() if name != "seed")
        places.setdefault(key, []).append(trial.settings.seed)
    assert set(map(tuple, places.values())) == {(0, 1, 2, 3, 4, 5, 6, 7)}
    recipes = {(trial.levels["mixer"], trial.settings.model.recipe) for trial in grown.cells}
    assert len(recipes) == 2  # later seeds have the size that was solved
    assert {trial.id for trial in study.trials} < {trial.id for trial in grown.trials}


def test_adding_until_decided_is_wrong_no_more_often_than_its_level():
    rng, wrong, rounds = np.random.default_rng(0), 0, 2000
    for ends in rng.normal(0, 3, (rounds, 8)).tolist():
        looks = (
            paired_test(
                differences=dict(enumerate(ends[:count])),
                region=(0.0, np.inf),
                rounding=0.0,
                test="t",
                complete=True,
            )
            for count in (3, 5, 8)
        )
        wrong += any(look.p <= LEVEL for look in looks)
    assert wrong / rounds < 0.05 + 3 * (0.05 * 0.95 / rounds) ** 0.5
