"""NSGA-II and NSGA-III propose what Optuna's do, which look at all points again and again."""

from functools import partial

import optuna
import pytest
from optuna.trial import TrialState

from activemem.engine.run.search.conformance import STUDY
from activemem.engine.run.search.samplers.generations import NSGAIIISampler, NSGAIISampler
from activemem.engine.run.search.samplers.optuna_space import suggest
from activemem.studies.study import load_study

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")


def proposed(sampler, points):
    """What is proposed where points end in another order than they begin, and some of them fail."""
    searched, training, found = load_study(STUDY), [], []
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)
    for place in range(points):
        trial = study.ask()
        found.append(values := searched.choose(partial(suggest, trial)))
        training.append((trial, values))
        if len(training) > 3:
            ended, values = training.pop(place % 4)
            failed = place % 17 == 5
            losses = (float(values["rate"]), values.get("heads", values.get("kernel")))
            study.tell(ended, None if failed else losses, state=TrialState.FAIL if failed else None)
    return found


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(NSGAIISampler, optuna.samplers.NSGAIISampler), (NSGAIIISampler, optuna.samplers.NSGAIIISampler)],
)
def test_they_propose_what_optunas_do(ours, theirs):
    assert proposed(ours(seed=3, population_size=12), 70) == proposed(theirs(seed=3, population_size=12), 70)


def test_the_parents_of_hundreds_of_generations_are_restored():
    before = optuna.create_study(directions=["minimize"], sampler=NSGAIISampler(seed=0, population_size=2))
    space = {"x": optuna.distributions.FloatDistribution(0.0, 1.0)}
    key = "NSGAIISampler:generation"
    before.add_trials(
        [
            optuna.trial.create_trial(
                params={"x": place / 1300},
                distributions=space,
                value=place / 1300,
                system_attrs={key: place // 2},
            )
            for place in range(1300)
        ]
    )
    before.ask(space)
    assert before.trials[-1].system_attrs[key] == 650
    parents = before.sampler.get_parent_population(before, 650)
    assert [each.params["x"] for each in parents] == [0.0, 1 / 1300]
