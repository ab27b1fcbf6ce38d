"""Bayesian optimisation over trees: depends only on ended points, and proposes no duplicates."""

from itertools import pairwise

import pytest
from optuna.trial import TrialState

from activemem import load_study
from activemem.engine.run.search import conformance
from activemem.engine.run.search.conformance import STUDY
from activemem.engine.run.search.optuna_study import OptunaStudy
from activemem.engine.run.search.samplers.gp_trees import (
    DRAWN,
    KEPT,
    RENEWAL,
    WINDOW,
    EndedPoint,
    TreeSampler,
    best_and_last,
    goodness,
    last_renewal,
    normal_scores,
)
from activemem.engine.run.search.samplers.search_observations import Proposals, values_key
from activemem.engine.run.search.stored_points import PointEnd


@pytest.fixture(scope="module")
def searched():
    return load_study(STUDY)


def worth(values):
    """Return a value that is best for convolutions of 4 and 32 with a high rate."""
    if "heads" in values:
        return -5.0
    return -abs(values["kernel"] - 4) - abs(values["other"] - 32) / 8 + 10 * values["rate"]


def ended(values):
    return PointEnd(TrialState.COMPLETE, 1, (worth(values),))


def test_what_is_best_is_found(searched):
    asked, best = OptunaStudy(searched), -9.0
    for begun in range(40):
        point, trial, _ = conformance.propose(asked, begun)
        asked.tell(point, ended(point.values), trial)
        best = max(best, worth(point.values))
    assert best > 0


def test_parallel_points_and_what_was_rejected_before_each_of_them_differ(searched):
    sampler, begun = TreeSampler(searched, seed=0), set()
    for count in range(DRAWN):
        values = sampler.propose(Proposals(begun=count))
        sampler.learn(values, ended(values))
        begun.add(values_key(values))
    training = []
    for rejections in (0, 3, 1, 2):
        rejected = []
        for _ in range(rejections + 1):
            known = {"begun": len(begun), "known": begun, "training": training}
            values = sampler.propose(Proposals(**known, rejected=rejected))
            assert values_key(values) not in begun | set(rejected)
            rejected.append(values_key(values))
        begun.add(rejected[-1])
        training.append(values)


def test_pruned_points_rank_below_ended_points_and_higher_the_later_they_were_pruned():
    ends = [
        PointEnd(TrialState.PRUNED, 2, (0.1,)),
        PointEnd(TrialState.COMPLETE, 1, (9.0,)),
        PointEnd(TrialState.PRUNED, 1, (0.0,)),
        PointEnd(TrialState.PRUNED, 2, (0.2,)),
        PointEnd(TrialState.COMPLETE, 1, (1.0,)),
    ]
    (loss,) = load_study(STUDY, ["search.direction=min"]).search.settings.objectives
    assert sorted(range(5), key=lambda place: goodness(ends[place], loss)) == [2, 3, 0, 1, 4]


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
