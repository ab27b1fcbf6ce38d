"""Evolution: small mutations, only from ended points; old points are removed, and bad ones lose."""

from random import Random

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from activemem import load_study
from activemem.engine.run.search.samplers.evolution import EvolutionSampler, PointChanges, cross
from activemem.engine.run.search.samplers.search_observations import Proposals, draw
from activemem.engine.run.search.stored_points import PointEnd

from .....study_texts import study_text

SPACE = {
    "rate": FloatDistribution(1e-5, 1e-1, log=True),
    "dropout": FloatDistribution(0.0, 0.5),
    "kernel": IntDistribution(3, 40),
    "width": IntDistribution(8, 512, log=True),
    "heads": IntDistribution(1, 7, step=2),
    "mixer": CategoricalDistribution(("sa", "conv", "sa + conv")),
    "fixed": CategoricalDistribution(("only",)),
}


def drawn(rng):
    return {name: draw(each, rng) for name, each in SPACE.items()}


def test_drawn_and_mutated_points_are_in_the_space_and_differ_in_one_value():
    rng, changed = Random(1), set()
    for _ in range(500):
        values = drawn(rng)
        other = PointChanges(SPACE).of(values, rng)
        for name, distribution in SPACE.items():
            assert distribution._contains(distribution.to_internal_repr(other[name])), (name, other[name])
        [name] = [name for name in values if values[name] != other[name]]
        changed.add(name)
    assert changed == SPACE.keys() - {"fixed"}


def test_values_that_cannot_be_mutated_stay():
    assert PointChanges(SPACE).of({"fixed": "only"}, Random(1)) == {"fixed": "only"}


def test_a_rate_moves_by_steps_of_its_logarithm():
    rng = Random(1)
    factors = [PointChanges(SPACE).of({"rate": 1e-3}, rng)["rate"] / 1e-3 for _ in range(500)]
    assert 0.4 < sum(factor > 1 for factor in factors) / 500 < 0.6
    assert 0.6 < sum(0.25 < factor < 4 for factor in factors) / 500 < 0.8  # within a standard deviation


def test_a_child_of_two_has_each_value_of_one_of_them():
    first, second = {"choice": "sa", "heads": 1}, {"choice": "conv", "kernel": 7}
    children = [cross(first, second, Random(seed)) for seed in range(20)]
    assert {child["choice"] for child in children} == {"sa", "conv"}
    assert all((child["heads"], child["kernel"]) == (1, 7) for child in children)


FLOATS = study_text(
    study={"name": "floats", "title": "Three numbers"},
    model={"recipe": "ff(8)", "dropout": "{a}"},
    task={"name": "addition"},
    train={"optimizer": {"name": "adam", "lr": "{b}", "weight_decay": "{c}"}},
    search={"trials": 9, "metric": "accuracy", "direction": "max"},
    space=dict.fromkeys("abc", "real(0.01, 0.9)"),
)


def parents(told, **sizes):
    """Return which points are parents of the next ones, after these outcomes."""
    sampler = EvolutionSampler(load_study(FLOATS).search, seed=0, **sizes)
    points = [{name: rng.random() for name in "abc"} for rng in map(Random, range(len(told)))]
    for values, end in zip(points, told, strict=True):
        sampler.learn(values, end)
    found = set()
    for tries in range(30):
        begun = sum(end is not FAILED for end in told)
        values = sampler.propose(Proposals(begun=begun, rejected=[frozenset()] * tries))
        kept = [place for place, each in enumerate(points) if each.items() & values.items()]
        assert len(kept) <= 2
        found.update(kept)
    return found


GOOD, BAD = PointEnd(TrialState.COMPLETE, 1, (0.9,)), PointEnd(TrialState.COMPLETE, 1, (0.1,))
GIVEN_UP, FAILED = PointEnd(TrialState.PRUNED, 1, (0.5,)), PointEnd(TrialState.FAIL, 1)


@pytest.mark.parametrize(
    ("told", "sample", "changed"),
    [
        ([GOOD, BAD, BAD], 2, {1, 2}),  # the oldest dies, however good it is
        ([BAD, BAD, GOOD], 2, {2}),
        ([BAD, BAD, GOOD], 1, {1, 2}),  # the best of one is any
        ([BAD, GIVEN_UP, BAD], 2, {2}),
        ([BAD, GOOD, FAILED, BAD], 2, {1}),  # what failed takes nobody's place
        ([BAD], 2, set()),  # a population that is not full yet
    ],
)
def test_the_best_of_a_few_of_the_last_points_is_changed(told, sample, changed):
    assert parents(told, population=2, sample=sample) == changed


def test_points_in_training_count_for_a_population_but_are_not_mutated():
    sampler = EvolutionSampler(load_study(FLOATS).search, seed=0, population=2, sample=2)
    first, second, third = (sampler.propose(Proposals(begun=begun)) for begun in range(3))
    assert first != second != third
    sampler.learn(second, GOOD)
    fourth = sampler.propose(Proposals(begun=3))
    assert len(fourth.items() & second.items()) == 2
    assert not fourth.items() & first.items()
