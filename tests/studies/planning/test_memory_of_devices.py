"""Memory in plans against torch's allocations on a GPU."""

import gc

import pytest
import torch

from activemem.engine.trial.training import Training
from activemem.studies.planning.memory_estimates import step_memory

from .test_memory_estimates import shaped


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize(
    "mixer", ["sa", "sa(span=50)", "conv(k=5)", "highway_conv(k=5)", "gru", "sa + conv(k=5)"]
)
def test_the_planned_memory_of_a_step_is_near_torch_allocations_on_a_gpu(mixer, dropout):
    settings = shaped(mixer, 512, 60, 256, dropout=dropout)
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    training = Training.begin(settings, torch.device("cuda"))
    training.model.train()
    for _ in range(2):  # the state of the optimiser is there from the first step on
        training.optimizer.zero_grad()
        torch.cuda.reset_peak_memory_stats()
        training.objective.begin_batch(1)
        training.add_gradients(0)
        training.trained.move()
    measured = torch.cuda.max_memory_allocated() - before
    assert 0.7 * measured < step_memory(settings).total < 2 * measured
