"""Trials of a study are read one by one, and are those that Optuna lists."""

import optuna
import pytest
from optuna.trial import TrialState

from activemem.engine.run.search.samplers.told_points import TrialsOfStudy


class Asked(optuna.samplers.RandomSampler):
    """Compares what is read with Optuna's list whenever a value is asked for."""

    def __init__(self):
        super().__init__(seed=0)
        self.compared = 0
        self.trials = {}

    def sample_independent(self, study, trial, param_name, param_distribution):
        read = self.trials.setdefault(id(study), TrialsOfStudy(study))
        read.read()
        listed = study.get_trials(deepcopy=False)
        assert list(read) == listed
        assert read[1:4] == listed[1:4]
        self.compared += len(read)
        return super().sample_independent(study, trial, param_name, param_distribution)


@pytest.mark.parametrize("pruner", [None, optuna.pruners.HyperbandPruner(max_resource=9)])
def test_trials_are_those_that_optuna_lists_as_they_come_and_end(pruner):
    sampler = Asked()
    study = optuna.create_study(study_name="brackets", sampler=sampler, pruner=pruner)
    out = []
    for number in range(12):
        out.append(study.ask())
        out[-1].suggest_float("x", 0, 1)
        if number % 3:
            study.tell(out.pop(0), 1.0)
        elif number:
            study.tell(out.pop(), state=TrialState.FAIL)
    assert sampler.compared > 12


def test_there_is_no_trial_beyond_those_that_were_counted():
    study = optuna.create_study()
    study.ask()
    read = TrialsOfStudy(study)
    with pytest.raises(IndexError):
        read[0]
    read.read()
    study.ask()
    assert (len(read), read[-1].number) == (1, 0)
