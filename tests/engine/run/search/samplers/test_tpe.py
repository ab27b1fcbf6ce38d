"""TPE proposes what is likely among the good points, by the densities that Optuna has."""

import math
from random import Random
from statistics import NormalDist

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers._tpe.parzen_estimator import _ParzenEstimator, _ParzenEstimatorParameters
from optuna.samplers._tpe.sampler import default_weights
from optuna.trial import TrialState, create_trial

from activemem.engine.run.search.conformance import NUMBERS, STUDY
from activemem.engine.run.search.samplers.factory import make_sampler
from activemem.engine.run.search.samplers.numbers import draw
from activemem.engine.run.search.samplers.optuna_space import distribution, suggest
from activemem.engine.run.search.samplers.told_points import ToldPoints
from activemem.engine.run.search.samplers.tpe.forms import Forms
from activemem.engine.run.search.samplers.tpe.parzen import ParzenEstimator
from activemem.engine.run.search.samplers.tpe.sampler import BEST, DRAWN, LAST, RENEWAL, Members
from activemem.grammar.dimensions import option_label
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
    ours = ParzenEstimator(list(SPACE.values()))
    ours.learn(np.stack(list(points.values()), axis=1))
    wanted = theirs.sample(np.random.RandomState(0), 24)
    found = np.log(ours.density(np.stack(list(wanted.values()), axis=1)))
    np.testing.assert_allclose(found, theirs.log_pdf(wanted), rtol=1e-9)


def drawn_points(rng, count):
    """Points with rows of numbers; some lack dimensions, and some are none."""
    columns = [
        rng.integers(0, 3, count),
        2.0 * rng.integers(0, 601, count),
        rng.integers(1, 601, count),
        np.exp(rng.uniform(math.log(1e-4), math.log(1e-1), count)),
        rng.uniform(0, 0.5, count),
    ]
    rows = np.stack(columns, axis=1).astype(float)
    rows[rng.random(rows.shape) < 0.3] = math.nan
    rows[rng.random(count) < 0.1] = math.nan
    return rows


def density_by_loops(space, points, point):
    """The density at a point by loops over kernels and dimensions, as the docstring of `parzen` says."""
    points = [each for each in points if not np.isnan(each).all()]
    weights, total = optuna_weights(len(points)), 0.0
    for place, weight in zip([None, *range(len(points))], weights, strict=True):
        product = 1.0
        for axis, dimension in enumerate(space):
            if not math.isnan(point[axis]):
                there = [each[axis] for each in points if not math.isnan(each[axis])]
                own = math.nan if place is None else points[place][axis]
                product *= kernel_by_loops(dimension, there, own, point[axis])
        total += weight * product
    return total


def optuna_weights(count):
    """The shares of the kernel around all points and of those around so many."""
    weights = np.concatenate([[1.0], default_weights(count)])
    return weights / weights.sum()


def kernel_by_loops(dimension, numbers, own, at):
    """What the kernel of the one that is `own`, NaN for the one around all, has at a number."""
    if isinstance(dimension, CategoricalDistribution):
        options, kernels = len(dimension.choices), len(numbers) + 1
        return 1 / options if math.isnan(own) else (1 / kernels + (at == own)) / (1 + options / kernels)
    half = dimension.step / 2 if isinstance(dimension, IntDistribution) else 0.0
    scale = math.log if dimension.log else float
    low, high = scale(dimension.low - half), scale(dimension.high + half)
    if math.isnan(own):
        middle, width = (low + high) / 2, high - low
    else:
        middle, others = scale(own), sorted(map(scale, numbers))
        place = others.index(middle)
        around = [low, *others, high][place : place + 3]
        if len(others) > 1:  # the ends of the range are no neighbours
            around = [each for each in ([None, *others, None][place : place + 3]) if each is not None]
        narrowest = (high - low) / min(100, 2 + len(others))
        width = min(max(narrowest, *(abs(middle - each) for each in around)), high - low)
    below = NormalDist(middle, width).cdf
    within = below(high) - below(low)
    if half:
        return (below(scale(at + half)) - below(scale(at - half))) / within
    return NormalDist(middle, width).pdf(scale(at)) / within


@pytest.mark.parametrize("count", [0, 1, 40])
def test_what_a_point_lacks_is_as_if_it_were_not_known(count):
    rng = np.random.default_rng(count)
    points, candidates = drawn_points(rng, count), drawn_points(rng, 20)
    points[:, 1:3] += 2.0 * np.arange(count)[:, None] - points[:, 1:3] * (count > 0)  # none twice
    points[:, 2] += 1.0
    ours = ParzenEstimator(list(SPACE.values()))
    ours.learn(points)
    wanted = [density_by_loops(list(SPACE.values()), points.tolist(), each) for each in candidates.tolist()]
    np.testing.assert_allclose(ours.density(candidates), wanted, rtol=1e-9)


def test_a_density_is_the_same_whatever_was_learnt_before():
    rng = np.random.default_rng(7)
    space, candidates = list(SPACE.values()), drawn_points(rng, 24)
    kept, points = ParzenEstimator(space), drawn_points(rng, 5)
    for step in range(60):
        change = rng.integers(4)
        if change == 0 and len(points) > 5:
            points = points[rng.integers(1, 4) :]
        elif change == 1:
            points = points.copy()
            points[rng.integers(len(points))] = drawn_points(rng, 1)
        else:
            points = np.concatenate([points, drawn_points(rng, 1 if step % 9 else 70)])
        kept.learn(points)
        fresh = ParzenEstimator(space)
        fresh.learn(points)
        np.testing.assert_array_equal(kept.density(candidates), fresh.density(candidates))
        drawn = [each.draw(9, np.random.default_rng(step)) for each in (kept, fresh)]
        np.testing.assert_array_equal(*drawn)


def test_points_are_drawn_by_their_density():
    points = np.array(
        [[0.0, 700.0, 40.0, 3e-3, 0.1], [0.0, 900.0, 9.0, 1e-2, 0.4], [1.0, 2.0, 8.0, 1e-3, 0.2]]
    )
    estimator = ParzenEstimator(list(SPACE.values()))
    estimator.learn(points)
    drawn = estimator.draw(4000, np.random.default_rng(0))
    for axis, each in enumerate(SPACE.values()):
        assert all(map(each._contains, drawn[:200, axis]))
    every = [[float(option)] for option in range(3)]
    alone = ParzenEstimator([SPACE["mixer"]])
    alone.learn(points[:, :1])
    shares = np.bincount(drawn[:, 0].astype(int)) / len(drawn)
    np.testing.assert_allclose(shares, alone.density(np.array(every)), atol=0.03)
    whole = np.arange(1.0, 601.0)
    alone = ParzenEstimator([SPACE["filter"]])
    alone.learn(points[:, 2:3])
    below = [(drawn[:, 2] <= each).mean() for each in whole]
    np.testing.assert_allclose(below, alone.density(whole[:, None]).cumsum(), atol=0.03)


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
    assert len(others) == BEST + LAST + 1000 - renewed
    assert np.isnan(others).sum() == len(good)
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


def names_together(searched, points, **given):
    """The dimensions that are chosen together after such points."""
    study = optuna.create_study(direction="maximize", sampler=make_sampler(searched.search, searched))
    for each in points:
        study.enqueue_trial(each)
        trial = study.ask()
        searched.choose(lambda name, dimension: suggest(trial, name, dimension))  # noqa: B023 -- called at once
        study.tell(trial, 1.0)
    names, known = list(study.sampler._space), Members(ToldPoints(study), study.sampler._space)
    known.read(before=len(points))
    return [{names[axis] for axis in axes} for axes in known.parts(**given)]


def test_which_dimensions_are_chosen_together(searched):
    with_heads, with_kernels = searched.dimensions["mixer"].options
    points = [{"mixer": option_label(each)} for each in (with_heads, with_kernels)]
    every = [{"rate", "mixer", "heads", "kernel", "other"}]
    assert names_together(searched, points, multivariate=True, group=True) == every
    some = names_together(searched, points, multivariate=True, group=False)
    assert (some[0], sorted(map(len, some))) == ({"rate", "mixer"}, [1, 1, 1, 2])
    alone = names_together(searched, points, multivariate=False, group=False)
    assert (len(alone), set(map(len, alone))) == (5, {1})


@pytest.mark.parametrize(
    "changes",
    [
        [],
        [
            "model.recipe={count} * ({mixer} + choice(gru, lstm, conv(k=integer(3, 40))) >> ff({filter}))",
            'search.space.count="integer(1, 4)"',
            'search.space.filter="choice({small}, {large}, 7)"',
            'search.space.small="choice(8, 16)"',
            'search.space.large="integer(64, 128)"',
        ],
    ],
)
def test_points_take_the_dimensions_that_the_study_says(changes):
    study = load_study(STUDY, changes)
    space = {name: distribution(each) for name, each in study.dimensions.items()}
    asked, rng, seen = Forms(study, space), Random(0), set()
    choices = []
    asked._choose = lambda suggest: choices.append(1) or study.choose(suggest)
    for _ in range(300):
        values = {name: draw(each, rng) for name, each in space.items()}
        row = [each.to_internal_repr(values[name]) for name, each in space.items()]
        wanted = study.choose(lambda name, _: values[name])  # noqa: B023 -- called at once
        assert asked.taken(row).tolist() == [name in wanted for name in space]
        seen.add(frozenset(wanted))
    assert (len(seen) > 1, len(choices)) == (True, len(seen))


def test_no_point_is_proposed_twice_while_candidates_are_new(searched):
    text = NUMBERS.replace('"{rate}"', "1e-3").replace('rate = "real(1e-4, 1e-1, log=true)"\n', "")
    small = load_study(text, ['search.space.other="integer(2, 9)"'])  # 128 points
    study = optuna.create_study(direction="maximize", sampler=make_sampler(searched.search, small))
    points = []
    for _ in range(30):
        trial = study.ask()
        points.append(small.choose(lambda name, dimension: suggest(trial, name, dimension)))  # noqa: B023 -- called at once
        study.tell(trial, points[-1]["heads"] - points[-1]["kernel"])
    later = [tuple(each.values()) for each in points[DRAWN:]]
    assert len(set(later)) == len(later)
    assert not set(later) & {tuple(each.values()) for each in points[:DRAWN]}


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
    assert (good.tolist(), np.isfinite(others).sum()) == (
        [[1e-4], [pytest.approx(1e-4 * 10 ** (3 / 97))]],
        10,
    )
