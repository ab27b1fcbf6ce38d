"""PriorBand draws anywhere, near the prior and near the best, in the shares of Mallik et al. 2023."""

from functools import partial

import optuna
import pytest
from optuna.distributions import IntDistribution

from activemem.engine.run.search.samplers.factory import make_sampler
from activemem.engine.run.search.samplers.optuna_space import suggest
from activemem.engine.run.search.samplers.prior import Prior
from activemem.engine.run.search.samplers.prior_band import source_shares
from activemem.storage import Store
from activemem.studies.study import StudyError, load_study

from .....study_texts import study_text
from ..analytic import search

SEARCH = study_text(
    study={"name": "band", "title": "How far a convolution should see"},
    model={"recipe": "conv(k={k}) >> ff({width})"},
    task={"name": "addition"},
    train={"epochs": 1, "steps_per_epoch": 1},
    factors={"seed": [0]},
    search={
        "sampler": "priorband",
        "trials": 17,
        "metric": "loss",
        "scheduler": "hyperband",
        "fidelity": "width",
        "prior": {"k": 300},
    },
    space={"k": "integer(2, 1000)", "width": "integer(8, 72)"},
)
SPACE = {"k": IntDistribution(2, 1000)}


def shares(best, rung=1):
    return source_shares(Prior({"k": 300}, 1.0), [({"k": k}, SPACE) for k in best], rung, 3)


def test_fewer_points_are_drawn_anywhere_on_higher_rungs():
    assert [shares([], rung)["random"] for rung in (0, 1, 2)] == [1 / 2, 1 / 4, 1 / 10]
    assert shares([])["prior"] == 3 / 4


def test_what_explains_the_best_points_better_gets_more_of_them():
    right, wrong = shares([300, 310, 290]), shares([900, 890, 910])
    assert right["prior"] == pytest.approx(right["best"], rel=0.05)
    assert wrong["prior"] < 0.01 < 0.74 < wrong["best"]
    assert all(sum(each.values()) == pytest.approx(1) for each in (right, wrong))


def test_points_of_the_last_rung_are_drawn_near_the_prior():
    study = load_study(SEARCH)
    asked = optuna.create_study(sampler=make_sampler(study.search, study))
    points = []
    for known in range(60):
        asked.sampler.begin(2, known=known, has_whole=False)
        points.append(study.choose(partial(suggest, asked.ask()))["k"])
    assert 40 <= sum(abs(k - 300) < 200 for k in points) < 60  # 47 are expected, by chance alone 24


def test_it_goes_on_where_it_was_cut_off(tmp_path, notes):
    whole, parts, again = Store(tmp_path / "whole"), Store(tmp_path / "parts"), []
    trained = search(SEARCH, whole, lambda values, _: abs(values["k"] - 310), notes)
    while more := search(SEARCH, parts, lambda values, _: abs(values["k"] - 310), notes, max_trials=8):
        again += more
    assert again == trained


def test_what_it_needs_is_told_at_once():
    with pytest.raises(StudyError, match="priorband: expected a prior, got none"):
        load_study(SEARCH.replace('prior = { "k" = 300 }\n', "").replace("prior = { k = 300 }\n", ""))
    with pytest.raises(StudyError, match="over another fidelity than epochs, got asha over epochs"):
        load_study(SEARCH, ["search.scheduler=asha", "search.fidelity=epochs", "search.min_fidelity=1"])
    with pytest.raises(
        StudyError, match="confidence: for the samplers random, tpe, evolution and gp_trees alone"
    ):
        load_study(SEARCH, ["search.confidence=0.5"])
