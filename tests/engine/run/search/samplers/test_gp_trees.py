"""Bayesian optimisation over trees: depends only on ended points, and proposes no duplicates."""

from itertools import pairwise

import optuna
import pytest
from optuna.trial import TrialState

from activemem import load_study
from activemem.engine.run.search import STUDY
from activemem.engine.run.search.samplers import (
    DRAWN,
    KEPT,
    RENEWAL,
    WINDOW,
    EndedPoint,
    SearchObservations,
    TreeSampler,
    best_and_last,
    last_renewal,
    normal_scores,
    point_key,
    suggest,
)


@pytest.fixture(scope="module")
def searched():
    return load_study(STUDY)


def asked(searched, study):
    trial = study.ask()
    return trial, searched.search.choose(lambda name, dimension: suggest(trial, name, dimension))


def worth(values):
    """Return a value that is best for convolutions of 4 and 32 with a high rate."""
    if "heads" in values:
        return -5.0
    return -abs(values["kernel"] - 4) - abs(values["other"] - 32) / 8 + 10 * values["rate"]


def searching(searched, told, seed=0):
    study = optuna.create_study(direction="maximize", sampler=TreeSampler(searched, seed=seed))
    study.add_trials(told)
    return study


def test_a_search_that_was_killed_resumes_as_if_uninterrupted_and_finds_what_is_best(searched):
    first = searching(searched, [])
    for _ in range(40):
        trial, values = asked(searched, first)
        first.tell(trial, worth(values))
    again = searching(searched, first.trials[:30])
    for expected in first.trials[30:]:
        trial, values = asked(searched, again)
        assert values == expected.params
        again.tell(trial, worth(values))
    assert first.best_value > 0


def test_parallel_points_and_what_was_rejected_before_each_of_them_differ(searched):
    study = searching(searched, [])
    for _ in range(DRAWN):
        trial, values = asked(searched, study)
        study.tell(trial, worth(values))
    begun = {point_key(each.params) for each in study.trials}
    for rejections in (0, 3, 1, 2):
        rejected = set()
        for place in range(rejections + 1):
            trial, values = asked(searched, study)
            assert point_key(values) not in begun | rejected
            if place < rejections:
                study.tell(trial, state=TrialState.FAIL)
                rejected.add(point_key(values))
        begun.add(point_key(values))


def test_a_search_whose_points_are_dealt_to_brackets_learns_within_each(searched):
    study = optuna.create_study(
        study_name="brackets",
        direction="maximize",
        sampler=TreeSampler(searched, seed=0),
        pruner=optuna.pruners.HyperbandPruner(max_resource=9),
    )
    for _ in range(3 * DRAWN):
        trial, values = asked(searched, study)
        trial.report(worth(values), 1)
        study.tell(trial, worth(values))
    assert len({point_key(each.params) for each in study.trials}) == 3 * DRAWN


def test_pruned_points_rank_below_ended_points_and_higher_the_later_they_were_pruned(searched):
    study = optuna.create_study(direction="minimize")
    for state, step, value in [
        (TrialState.PRUNED, 2, 0.1),
        (TrialState.COMPLETE, 0, 9.0),
        (TrialState.PRUNED, 1, 0.0),
        (TrialState.PRUNED, 2, 0.2),
        (TrialState.FAIL, 0, 0.0),
        (TrialState.COMPLETE, 0, 1.0),
    ]:
        trial = study.ask()
        trial.suggest_int("place", trial.number, trial.number)
        if state == TrialState.PRUNED:
            trial.report(value, step)
        study.tell(trial, value if state == TrialState.COMPLETE else None, state=state)
    told = SearchObservations(study)
    told.learn(before=6)
    ranked = sorted(told.ended, key=lambda each: each.goodness, reverse=True)
    assert [each.values["place"] for each in ranked] == [5, 1, 0, 3, 2]


def test_scores_are_quantiles_of_ranks_and_equal_ones_share_theirs():
    worst, best, middle = (True, 0, -3.0), (True, 0, 7e9), (True, 0, 0.0)
    assert normal_scores([middle, best, worst, middle]).round(3).tolist() == [0.0, 1.15, -1.15, 0.0]


def test_the_best_and_the_last_of_many_points_are_used():
    ended = [EndedPoint({"place": place}, (True, 0, float(place % 1000))) for place in range(10_000)]
    found = [best_and_last(ended[:count], best=KEPT, last=WINDOW - KEPT) for count in (10, WINDOW, 10_000)]
    assert [len(each) for each in found] == [10, WINDOW, WINDOW]
    places = [each.values["place"] for each in found[-1]]
    assert places[KEPT:] == list(range(10_000 - WINDOW + KEPT, 10_000))
    assert min(place % 1000 for place in places[:KEPT]) >= 990
    renewals = sorted({last_renewal(count) for count in range(DRAWN, 10_000)})
    assert {after - before for before, after in pairwise(renewals[20:])} == {RENEWAL}
