"""A right prior speeds up a search, a wrong one is overcome, and a restored search keeps it."""

import math
from functools import partial
from random import Random
from statistics import fmean

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from activemem.engine.run.search.factories import make_sampler
from activemem.engine.run.search.samplers.gp_trees import Prior
from activemem.engine.run.search.samplers.search_observations import place_of, suggest
from activemem.storage import Store
from activemem.studies.study import StudyError, load_study

from .....study_texts import study_text
from ..analytic import search

SEARCH = study_text(
    study={"name": "believed", "title": "A mixer, its kernel and a rate"},
    model={"recipe": "{mixer} >> ff(8)"},
    task={"name": "addition"},
    train={"optimizer": {"name": "adam", "lr": "{lr}"}, "epochs": 1, "steps_per_epoch": 1},
    search={"sampler": "random", "trials": 24, "metric": "loss"},
    space={
        "mixer": "choice(sa, ff(8), highway_conv(k=3), conv(k={k}))",
        "k": "integer(1, 64)",
        "lr": "real(1e-5, 1e-1, log=true)",
    },
)
GOOD = '{ mixer = "conv(k={k})", k = 20, lr = 2e-3 }'
BAD = '{ mixer = "sa", k = 60, lr = 2e-5 }'
WRONG = '{ mixer = "gru", kernel = 3, k = 65, lr = true }'
SEEDS = 3


def with_prior(values):
    """Return a sampler with a prior, as in a study file."""
    return f"{{ name = 'gp_trees', prior = {values} }}"


def loss(values):
    """Return a loss with its minimum 0 for a convolution of 16 and a rate of 1e-3."""
    kernel = abs(values["k"] - 16) / 16 if "k" in values else 3
    return kernel + abs(math.log10(values["lr"] * 1e3))


def losses(seed, changes=()):
    """Return the losses of a search's points."""
    study = load_study(SEARCH, [*changes, f"search.seed={seed}"])
    asked = optuna.create_study(sampler=make_sampler(study.search, study))
    found = []
    for _ in range(study.search.trials):
        trial = asked.ask()
        found.append(loss(study.choose(partial(suggest, trial))))
        asked.tell(trial, found[-1])
    return found


def best_after(points, changes):
    """Return the lowest loss among the first points, averaged over seeds."""
    runs = [losses(seed, changes) for seed in range(SEEDS)]
    return [fmean(min(run[:count]) for run in runs) for count in points]


def test_a_good_prior_finds_the_best_earlier_and_a_wrong_one_is_overcome():
    (early, late), (early_good, _), (_, late_bad) = (
        best_after((8, 24), [f"search.sampler={chosen}"])
        for chosen in ("gp_trees", with_prior(GOOD), with_prior(BAD))
    )
    assert early_good < 0.6 * early
    assert late_bad < early
    assert late_bad < 2 * late + 0.5


@pytest.mark.parametrize(
    "dimension",
    [
        FloatDistribution(1e-4, 1.0, log=True),
        IntDistribution(2, 16, step=2),
        CategoricalDistribution(("sa", "conv", "ff")),
    ],
)
def test_draws_are_as_likely_as_the_prior_says(dimension):
    named = {"x": "conv"} if isinstance(dimension, CategoricalDistribution) else {"x": dimension.low * 4}
    prior = Prior(named, 0.999)
    drawn = [prior.draw("x", dimension, Random(seed)) for seed in range(4000)]
    if isinstance(dimension, CategoricalDistribution):
        near = drawn.count("conv") / len(drawn)
        assert near == pytest.approx(math.exp(prior.log_ratio({"x": "conv"}, {"x": dimension})) / 3, abs=0.03)
        return
    middle = place_of(dimension, named["x"])
    assert all(dimension._contains(value) for value in drawn)
    within = fmean(abs(place_of(dimension, value) - middle) <= 0.15 for value in drawn)
    assert 0.6 < within < 0.85
    far = {"x": dimension.high}
    assert prior.log_ratio(named, {"x": dimension}) > 0.5 > 0 > prior.log_ratio(far, {"x": dimension})


def test_a_search_with_a_prior_resumes_as_if_it_had_not_been_stopped(tmp_path, notes):
    def value(values, seed):
        return loss(values)

    changes = [f"search.sampler={with_prior(GOOD)}", "search.trials=14"]
    whole = search(SEARCH, Store(tmp_path / "whole"), value, notes, changes)
    parts = Store(tmp_path / "parts")
    begun = search(SEARCH, parts, value, notes, changes, max_trials=11)
    assert [*begun, *search(SEARCH, parts, value, notes, changes)] == whole


def test_all_that_is_wrong_with_a_prior_is_told_at_once():
    with pytest.raises(StudyError) as told:
        load_study(SEARCH, [f"search.sampler={with_prior(WRONG)}"])
    assert [fault.message for fault in told.value.faults] == [
        "[search] sampler.prior.mixer: unknown level 'gru' among the options; "
        "known: conv(k={k}), ff(8), highway_conv(k=3), sa",
        "[search] sampler.prior: unknown dimension 'kernel'; known: k, lr, mixer",
        "[search] sampler.prior.k: expected 1 to 64, got 65",
        "[search] sampler.prior.lr: expected 1e-05 to 0.1, got true",
    ]
    with pytest.raises(StudyError, match="sampler: unknown key 'prior'"):
        load_study(SEARCH, [f"search.sampler={{ name = 'cmaes', prior = {GOOD} }}"])
    with pytest.raises(StudyError, match="confidence: expected a prior beside it, got none"):
        load_study(SEARCH, ["search.sampler={ name = 'gp_trees', confidence = 0.5 }"])
