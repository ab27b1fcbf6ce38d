"""Accumulation: sizes of the parts of a batch differ by at most one, and their union is the batch."""

import pytest
import torch

from activemem.blocks.core.block import StreamState, split_streams
from activemem.engine.objectives.base import micro_batch_weight, part_of
from activemem.engine.trial.training import Training
from activemem.studies.schema.settings import TrialSettings

CPU = torch.device("cpu")
TASKS = {
    "tagging": ({"name": "multiply"}, "conv(k=3) >> ff(8)", {"curriculum": {"start": 7}}),
    "numbers": ({"name": "recall_addition"}, "mean_pool", {}),
    "lengths": ({"name": "recall_multiplication", "variable": True}, "mean_pool", {}),
}


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 8, 9])
def test_parts_are_those_of_tensor_split_and_weigh_as_many_rows(parts):
    for count in (7, 8, 20):
        rows = torch.arange(count, dtype=torch.float64)
        found = [part_of(rows, part, parts) for part in range(parts)]
        assert all(one.equal(other) for one, other in zip(found, rows.tensor_split(parts), strict=True))
        weights = [micro_batch_weight(count, part, parts) for part in range(parts)]
        means = [each.mean() if len(each) else 0.0 for each in found]
        mean = sum(weight * mean for weight, mean in zip(weights, means, strict=True)) / parts
        assert mean == pytest.approx(float(rows.mean()), abs=1e-12)
        assert (set(weights) == {1.0}) == (count % parts == 0)


@pytest.mark.parametrize("kind", TASKS)
@pytest.mark.parametrize("number", [4, 3])  # of as many sequences, or not
def test_a_batch_in_parts_gives_the_same_losses_and_weights(kind, number):
    task, recipe, train = TASKS[kind]
    whole, parts = (
        Training.begin(
            TrialSettings.model_validate(
                {
                    "model": {"recipe": recipe, "d_model": 8, "dropout": 0.0},
                    "task": task,
                    "train": {
                        "optimizer": {"name": "adam", "lr": 1e-2},
                        "batch_size": 8,
                        "epochs": 1,
                        "steps_per_epoch": 4,
                        "accumulate": count,
                        **train,
                    },
                }
            ),
            CPU,
        )
        for count in (1, number)
    )
    for _ in range(3):
        whole.take_steps()
        parts.take_steps()
    torch.testing.assert_close(parts._loss, whole._loss, rtol=1e-4, atol=0.0)
    for name, weight in whole.weights().items():
        torch.testing.assert_close(parts.weights()[name], weight, rtol=1e-3, atol=1e-5)


def test_states_of_streams_are_split_as_rows_are():
    rows = torch.arange(7.0)[:, None]
    whole = [StreamState(3, (rows, None))]
    three = split_streams(whole, 3)
    assert [each.block_states[0].flatten().tolist() for each in three] == [[0, 1, 2], [3, 4], [5, 6]]
    assert split_streams(three, 1)[0].block_states[0].equal(rows)
