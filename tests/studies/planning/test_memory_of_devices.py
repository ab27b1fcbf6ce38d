"""What a plan says of memory where a CPU trains, and where a GPU does: what torch holds on each."""

import gc

import pytest
import torch

from activemem.blocks.core import correlation
from activemem.engine.trial.training import Training
from activemem.grammar import analyse
from activemem.grammar.vocabulary.convolutions import GAIN
from activemem.grammar.vocabulary.spec import CpuBatch
from activemem.studies.planning.memory_estimates import step_memory

from .test_memory_estimates import peak_bytes, shaped

BY_FREQUENCIES = [
    (mixer, width, length, batch)
    for mixer in (
        "conv(k=10)",
        "persistent_conv(k=12)",
        "highway_conv(k=20)",
        "cgru(k=10)",
        "sa + conv(k=16)",
    )
    for width, length, batch in ((64, 20, 32), (128, 10, 32), (128, 40, 16), (96, 24, 200))
]


@pytest.mark.parametrize(("mixer", "width", "length", "batch"), BY_FREQUENCIES)
def test_a_step_on_a_cpu_holds_what_convolutions_keep_by_frequencies_too(
    mixer, width, length, batch, monkeypatch
):
    monkeypatch.setattr(correlation, "onednn_has_wider_vectors", lambda: False)
    settings = shaped(mixer, width, length, batch, dropout=0.1)
    measured = peak_bytes(Training(settings, torch.device("cpu")))
    assert step_memory(settings, cpu_gain=GAIN).total == pytest.approx(measured, rel=0.2)


def changed(settings, part, **values):
    """The settings with other values in a part."""
    return settings.model_copy(update={part: getattr(settings, part).model_copy(update=values)})


def test_steps_that_take_no_frequencies_hold_what_a_gpu_holds():
    settings = shaped("conv(k=10)", 64, 20, 32, dropout=0.0)
    held = step_memory(settings, cpu_gain=GAIN).total
    assert held > step_memory(settings).total
    assert step_memory(settings, cpu_gain=1e9).total == step_memory(settings).total
    for part, values in (
        ("train", {"compile": True}),
        ("train", {"precision": "bf16"}),
        ("model", {"recipe": "sa >> ff(128)"}),
    ):
        other = changed(settings, part, **values)
        assert step_memory(other, cpu_gain=GAIN) == step_memory(other)
    cpu, causal = CpuBatch(sequences=32, gain=GAIN), {"d_model": 64, "vocab": 9, "length": 20, "causal": True}
    plain, found = (analyse("conv(k=10)", **causal, cpu=each).memory(32) for each in (None, cpu))
    assert plain == found


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("mixer", ["sa", "conv(k=5)", "highway_conv(k=5)", "gru", "sa + conv(k=5)"])
def test_what_a_step_holds_on_a_gpu_is_within_a_fifth_of_what_torch_allocates_there(mixer):
    settings = shaped(mixer, 512, 60, 256, dropout=0.0)
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    training = Training(settings, torch.device("cuda"))
    training.model.train()
    for _ in range(2):  # the state of the optimiser is there from the first step on
        training.optimizer.zero_grad()
        torch.cuda.reset_peak_memory_stats()
        training.objective.begin_batch(1)
        training._accumulate_gradients(0)
        training.move_weights()
    measured = torch.cuda.max_memory_allocated() - before
    assert step_memory(settings).total == pytest.approx(measured, rel=0.2)
