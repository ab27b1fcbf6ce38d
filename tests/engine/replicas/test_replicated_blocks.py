"""Every block that reads a sequence computes on two devices what it does on one."""

from pathlib import Path

import pytest
import torch

from activemem.engine.replicas.replicated_training import ReplicatedTraining
from activemem.engine.replicas.sharded_training import ShardedTraining
from activemem.engine.replicas.share import spread
from activemem.engine.replicas.training_factory import ReplicatedTrainings
from activemem.engine.trial.training import Training
from activemem.grammar import render
from activemem.studies.schema.settings import TrialSettings

from ...blocks.example_blocks import SEQUENCE_BLOCKS, example_block

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def group():
    made = ReplicatedTrainings([CPU, CPU])
    yield made.group
    made.end()


def settings(name):
    return TrialSettings.model_validate(
        {
            "model": {"recipe": render(example_block(name)), "d_model": 16, "dropout": 0.0},
            "task": {"name": "sort"},
            "train": {
                "optimizer": {"name": "adam", "lr": 1e-2},
                "batch_size": 8,
                "epochs": 2,
                "steps_per_epoch": 2,
                "clip_norm": 0.5,
                "curriculum": {"start": 8, "grow_at": 0.1},
            },
        }
    )


@pytest.mark.heavy
@pytest.mark.parametrize("make", [ReplicatedTraining, ShardedTraining])
@pytest.mark.parametrize("name", SEQUENCE_BLOCKS)
def test_every_block_computes_on_two_devices_what_it_does_on_one(group, name, make):
    found, alone = make(settings(name), group, Path("data")), Training(spread(settings(name), 2), CPU)
    for _ in range(2):
        assert found.advance()["loss"] == pytest.approx(alone.advance()["loss"], rel=1e-4)
    tolerance = 1e-3 if name == "hyena" else 1e-5  # its sines of ten times what enters them grow thrice
    ours = found.weights()
    for path, weight in alone.weights().items():
        torch.testing.assert_close(ours[path], weight, rtol=0, atol=tolerance)
