"""Tests of the plan's sentences on settings that need more steps or epochs than a training has."""

import pytest

from activemem.studies.resolve.training_budget import unreached_settings
from activemem.studies.schema.settings import TrainSettings

SAMPLING = {"sampling": 0.1}
# the values of each key that ten epochs of ten steps just reach, and do not reach
EDGES = {
    "warm-up": (lambda n: {"schedule": {"name": "constant", "warmup": n}}, 100, 101, "ends at 99 % of lr"),
    "cool-down": (
        lambda n: {"schedule": {"name": "warmup_stable_decay", "warmup": 40, "cooldown": n}},
        60,
        61,
        "the rate never reaches lr",
    ),
    "milestones": (
        lambda n: {"schedule": {"name": "milestones", "milestones": [50, n]}},
        99,
        100,
        "milestones = [100] has no effect",
    ),
    "patience on a plateau": (
        lambda n: {"schedule": {"name": "plateau", "patience": n}},
        8,
        9,
        "schedule.patience = 9 has no effect",
    ),
    "early stopping": (
        lambda n: {"early_stopping": {"metric": "dev_loss", "patience": n}},
        8,
        9,
        "early_stopping.patience = 9 has no effect",
    ),
    "stop": (
        lambda n: {"stop": {"within": 0.1, "epochs": n}},
        8,
        9,
        "stop.epochs = 9 has no effect",
    ),
    "average": (lambda n: {"average": 1 - 1 / n}, 100, 200, "spans about 200 steps"),
    "doubled share of guesses": (
        lambda n: SAMPLING | {"scheduled_sampling": {"start": 0.01, "double_every": n}},
        100,
        200,
        "the share becomes 1.41 times start",
    ),
}


@pytest.mark.parametrize(("keys", "reached", "beyond", "sentence"), EDGES.values(), ids=EDGES)
def test_a_plan_names_settings_beyond_the_end_of_a_training(keys, reached, beyond, sentence):
    def sentences(value):
        plain = {"optimizer": {"name": "adam", "lr": 0.1}, "batch_size": 4}
        train = TrainSettings.model_validate(plain | {"epochs": 10, "steps_per_epoch": 10} | keys(value))
        return list(unreached_settings(train))

    assert sentences(reached) == []
    (found,) = sentences(beyond)
    assert sentence in found
