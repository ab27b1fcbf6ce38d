"""TPE proposes what is likely among the good points, by the densities that Optuna has."""

import math

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers._tpe.parzen_estimator import _ParzenEstimator, _ParzenEstimatorParameters
from optuna.samplers._tpe.sampler import default_weights
from optuna.trial import TrialState, create_trial

from activemem.engine.run.search.conformance import STUDY
from activemem.engine.run.search.samplers.factory import make_sampler
from activemem.engine.run.search.samplers.optuna_space import suggest
from activemem.engine.run.search.samplers.told_points import ToldPoints
from activemem.engine.run.search.samplers.tpe.parzen import ParzenEstimator
from activemem.engine.run.search.samplers.tpe.sampler import BEST, LAST, RENEWAL, Members
from activemem.storage import Store
from activemem.studies.study import load_study

from ..analytic import search

SPACE = {
    "mixer": CategoricalDistribution(("sa", "conv", "gru")),
    "width": IntDistribution(0, 1200, step=2),
    "filter": IntDistribution(1, 600, log=True),
    "rate": FloatDistribution(1e-4, 1e-1, log=True),
    "dropout": FloatDistribution(0.0, 0.5),
}


@pytest.mark.parametrize("count", [0, 1, 2, 24, 300])
def test_densities_are_those_of_optuna(count):
    rng = np.random.default_rng(count)  # no number is twice there: how Optuna sorts equal ones is left open
    points = {
        "mixer": rng.integers(0, 3, count).astype(float),
        "width": 2.0 * rng.permutation(600)[:count],
        "filter": 1.0 + rng.permutation(600)[:count],
        "rate": np.exp(rng.uniform(math.log(1e-4), math.log(1e-1), count)),
        "dropout": rng.uniform(0, 0.5, count),
    }
    settings = _ParzenEstimatorParameters(1.0, True, False, default_weights, True)
    theirs = _ParzenEstimator(points, SPACE, settings)
    ours = ParzenEstimator(list(SPACE.values()), np.stack(list(points.values()), axis=1))
    wanted = theirs.sample(np.random.RandomState(0), 24)
    found = np.log(ours.density(np.stack(list(wanted.values()), axis=1)))
    np.testing.assert_allclose(found, theirs.log_pdf(wanted), rtol=1e-9)


def test_points_are_drawn_by_their_density():
    points = np.array(
        [[0.0, 700.0, 40.0, 3e-3, 0.1], [0.0, 900.0, 9.0, 1e-2, 0.4], [1.0, 2.0, 8.0, 1e-3, 0.2]]
    )
    estimator = ParzenEstimator(list(SPACE.values()), points)
    drawn = estimator.draw(4000, np.random.default_rng(0))
    for axis, each in enumerate(SPACE.values()):
        assert all(map(each._contains, drawn[:200, axis]))
    every = [[float(option)] for option in range(3)]
    alone = ParzenEstimator([SPACE["mixer"]], points[:, :1]).density(np.array(every))
    shares = np.bincount(drawn[:, 0].astype(int)) / len(drawn)
    np.testing.assert_allclose(shares, alone, atol=0.03)


@pytest.fixture(scope="module")
def searched():
    return load_study(STUDY, ["search.sampler=tpe"])


def told_study(searched, points, value):
    """A search of so many points that have ended, with dimensions that only some of them have."""
    study = optuna.create_study(direction="maximize", sampler=make_sampler(searched.search, searched))
    rate = FloatDistribution(1e-4, 1e-1, log=True)
    mixer = CategoricalDistribution(searched.dimensions["mixer"].options)
    for place in range(points):
        study.add_trial(
            create_trial(
                params={"rate": 1e-4 * 10 ** (3 * (place % 97) / 97), "mixer": mixer.choices[0]},
                distributions={"rate": rate, "mixer": mixer},
                value=value(place),
            )
        )
    return study


def test_of_many_points_the_best_and_the_last_are_learnt_from(searched):
    study = told_study(searched, 1000, lambda place: place % 97)
    known = Members(ToldPoints(study), {"rate": FloatDistribution(1e-4, 1e-1, log=True)})
    known.read(before=1000)
    good, others = known.split(with_training=True)
    assert (len(good), good.min() > 0.07) == (25, True)
    renewed = 1000 // RENEWAL * RENEWAL
    assert len(good) + len(others) == BEST + LAST + 1000 - renewed
    assert study.ask().suggest_float("rate", 1e-4, 1e-1, log=True) > 0.03


def test_what_is_beyond_a_limit_is_not_good(searched):
    study = told_study(searched, 40, lambda place: place)
    for rate in (1e-4, 2e-4, 3e-4, 4e-4):
        trial = study.ask({"rate": FloatDistribution(1e-4, 1e-1, log=True)})
        trial.set_constraint("flops < 1", 1.0)
        study.tell(trial, 100.0 + rate)
    known = Members(ToldPoints(study), {"rate": FloatDistribution(1e-4, 1e-1, log=True)})
    known.read(before=44)
    assert known.split(with_training=True)[0].max() == pytest.approx(1e-4 * 10 ** (3 * 39 / 97))


def test_dimensions_that_the_same_points_take_are_chosen_together(searched):
    study = optuna.create_study(direction="maximize", sampler=make_sampler(searched.search, searched))
    for _ in range(12):
        trial = study.ask()
        searched.choose(lambda name, dimension: suggest(trial, name, dimension))  # noqa: B023 -- called at once
        study.tell(trial, 1.0)
    known = study.sampler._known.of(study)
    known.read(before=12)
    together = {name: set(names) for name, names in known.groups(multivariate=True, group=True).items()}
    assert together["rate"] == {"rate", "mixer"}
    assert (together["kernel"], together["heads"]) == ({"kernel", "other"}, {"heads"})
    assert known.groups(multivariate=True, group=False)["kernel"] == ["kernel"]
    assert (
        known.groups(multivariate=True, group=False)["rate"]
        == known.groups(multivariate=True, group=True)["rate"]
    )
    assert set(map(len, known.groups(multivariate=False, group=False).values())) == {1}


def test_a_search_that_was_killed_goes_on_as_it_would_have(tmp_path, notes):
    changes = ["search.trials=16", "search.sampler=tpe"]
    worth = lambda values, seed: len(values) - abs(math.log10(values["rate"]) + 2)  # noqa: E731 -- a formula
    whole = search(STUDY, Store(tmp_path / "whole"), worth, notes, changes)
    parts = Store(tmp_path / "parts")
    begun = [
        point for count in (11, 3) for point in search(STUDY, parts, worth, notes, changes, max_trials=count)
    ]
    assert [*begun, *search(STUDY, parts, worth, notes, changes)] == whole


def test_points_that_were_given_up_are_worse_than_those_that_ended(searched):
    study = told_study(searched, 9, lambda place: -place)
    for _ in range(3):
        trial = study.ask()
        trial.suggest_float("rate", 1e-4, 1e-1, log=True)
        trial.report(50.0, 1)
        study.tell(trial, state=TrialState.PRUNED)
    known = Members(ToldPoints(study), {"rate": FloatDistribution(1e-4, 1e-1, log=True)})
    known.read(before=12)
    good, others = known.split(with_training=False)
    assert (good.tolist(), len(others)) == ([[1e-4], [pytest.approx(1e-4 * 10 ** (3 / 97))]], 10)
