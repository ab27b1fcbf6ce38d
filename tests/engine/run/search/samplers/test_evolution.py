"""Evolution: small mutations, only from ended points; old points are removed, and bad ones lose."""

from random import Random

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from activemem.engine.run.search.samplers import EvolutionSampler, PointChanges, cross, draw

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


def parents(told, **sizes):
    """Return which points are parents of the next ones, after these outcomes."""
    study = optuna.create_study(direction="maximize", sampler=EvolutionSampler(seed=0, **sizes))
    space = {name: FloatDistribution(0.0, 1.0) for name in ("a", "b", "c")}
    points = [{name: rng.random() for name in space} for rng in map(Random, range(len(told)))]
    for values, (state, value) in zip(points, told, strict=True):
        study.add_trial(
            optuna.trial.create_trial(params=values, distributions=space, state=state, value=value)
        )
    found = set()
    for _ in range(30):
        trial = study.ask(space)
        study.tell(trial, state=TrialState.FAIL)
        kept = [place for place, each in enumerate(points) if each.items() & trial.params.items()]
        assert len(kept) <= 2
        found.update(kept)
    return found


GOOD, BAD = (TrialState.COMPLETE, 0.9), (TrialState.COMPLETE, 0.1)
GIVEN_UP, FAILED = (TrialState.PRUNED, None), (TrialState.FAIL, None)


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
    study = optuna.create_study(sampler=EvolutionSampler(seed=0, population=2, sample=2))
    first, second, third = study.ask(SPACE), study.ask(SPACE), study.ask(SPACE)
    assert first.params != second.params != third.params
    study.tell(second, 1.0)
    fourth = study.ask(SPACE)
    assert len(fourth.params.items() & second.params.items()) == len(SPACE) - 1
    assert len(fourth.params.items() & first.params.items()) <= 3
