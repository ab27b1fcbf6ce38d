"""What a population can search: settings of the optimizer alone, in generations of whole epochs."""

import pytest

from activemem.studies.study import StudyError, load_study

from ...study_texts import POPULATION


def test_all_members_come_to_each_generation():
    study = load_study(POPULATION)
    assert study.fidelity.rungs == (1, 2, 3)
    assert study.trials_by_rung == [4, 4, 4]
    assert study.search.sampler == "random"
    assert study.epochs == 3
    assert load_study(POPULATION, ["train.epochs=8", "search.interval=2"]).fidelity.rungs == (2, 4, 6, 8)


WRONG = {
    "search.interval=2": "expected a part of the 3 epochs of [train] that divides them, got 2",
    "search.interval=3": "expected a part of the 3 epochs of [train] that divides them, got 3",
    "search.interval=0": "expected at least 1, got 0",
    "search.scheduler=none": "interval: for the scheduler population alone, got none",
    "search.sampler=tpe": "population draws its members, expected random or no key, got tpe",
    "search.trials=1": "expected at least 2 members of the population, got 1",
    "search.warm_start=true": "warm_start: a population has none, as all of its members are trained",
    "search.budget={trainings = 4}": "budget: a population has none",
    "search.prior={lr = 0.1}": "prior: a population has none",
    "search.limits={loss = '< 1'}": "limits: a population has none",
    "search.fidelity=data": "fidelity: for the schedulers asha and hyperband alone, got population",
    "search.metric=['loss', 'accuracy']": "population is for one metric alone, got loss, accuracy",
    "search.metric=seconds": "population needs a metric of what is learnt, got 'seconds'",
    "search.metric=parameters": "population needs a metric of what is learnt, got 'parameters'",
    "search.space={lr = 'choice(0.1, 0.2, 0.3)', decay = 'choice(0)'}": "as the 4 members, got 3",
    "model.dropout='{decay}'": "[train.optimizer] alone, got decay in model.dropout",
    "model.recipe='conv(k=integer(2, 4)) >> ff(8)'": "[train.optimizer] alone, got conv.k in the recipe",
    "train.schedule={name='cosine'}": "whose rates do not depend on the number of epochs",
    "train.epochs='{lr}'": "generations in epochs: expected a number of them in [train], got '{lr}'",
    "factors.epochs=[2, 4]": "expected a number of them in [train], got 'epochs' as what varies",
    "train.changes=[{after = 1, lr = 0.1}]": "a population makes these itself",
    "study.max_parameters=10": "over the budget",
}


@pytest.mark.parametrize("change", WRONG)
def test_what_cannot_be_a_population_is_told_at_once(change):
    with pytest.raises(StudyError) as told:
        load_study(POPULATION, [change])
    assert WRONG[change] in str(told.value)
