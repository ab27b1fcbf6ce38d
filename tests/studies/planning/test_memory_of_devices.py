"""What a plan says of memory where a CPU trains, and where a GPU does: what torch holds on each."""

import gc

import pytest
import torch
from torch.nn.attention import flex_attention

from activemem.blocks import build
from activemem.blocks.core import correlation
from activemem.blocks.layers import window_attention
from activemem.blocks.layers.windows.flex import fused_window
from activemem.blocks.testing.fixtures import saved_bytes
from activemem.engine.trial.training import Training
from activemem.grammar import analyse
from activemem.grammar.vocabulary.convolutions import GAIN
from activemem.grammar.vocabulary.spec import CpuBatch
from activemem.studies.planning.memory_estimates import step_memory
from activemem.studies.study import load_study

from ...study_texts import study_text
from .gpu_emulation import compute_as_a_gpu
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


STREAMS = [
    ("2 * all_attn(N=256, heads=4, span=512)", 128, 128, 8, 0.1),
    ("2 * all_attn(N=64, heads=4, span=128)", 128, 128, 8, 0.1),
    ("2 * all_attn(N=2048, span=2048)", 512, 256, 1, 0.3),
    ("2 * (sa(pos=relative, span=2048) >> ff(2048))", 512, 256, 1, 0.3),
    ("2 * (sa(heads=4, span=512) >> ff(512))", 128, 128, 8, 0.1),
    ("2 * (sa(heads=4, pos=relative, span=64, pos_values=true) >> ff(512))", 128, 128, 8, 0.0),
]


@pytest.mark.parametrize(("recipe", "width", "context", "batch", "dropped"), STREAMS)
def test_a_step_of_a_stream_holds_on_a_gpu_what_plain_products_of_its_windows_keep(
    recipe, width, context, batch, dropped, tmp_path, monkeypatch
):
    compute_as_a_gpu(monkeypatch)
    settings = streamed(recipe, width, context, batch, dropped)
    measured = peak_bytes(Training(settings, torch.device("cpu"), tmp_path))
    assert step_memory(settings, device="gpu").total == pytest.approx(measured, rel=0.2)


def streamed(recipe, width, context, batch, attention_dropout):
    """The settings of a language model that reads a text in pieces, the past of the first one zero."""
    text = study_text(
        model={
            "recipe": recipe,
            "d_model": width,
            "position": "none",
            "zero_past": True,
            "dropout": 0.1,
            "attention_dropout": attention_dropout,
        },
        task={
            "name": "language_model",
            "corpus": "paradise-lost",
            "batching": "stream",
            "tokens": "characters",
            "context": context,
        },
        train={"batch_size": batch, "curriculum": None},
        factors={"seed": [0]},
    )
    return load_study(text).trials[0].settings


@pytest.mark.parametrize(
    ("mixer", "length", "attention_dropout"),
    [
        ("sa", 256, 0.1),
        ("sa", 256, 0.0),
        ("sa", 40, 0.0),
        ("sa(pos=alibi)", 100, 0.0),
        ("fox", 100, 0.1),
        ("diff_attn", 100, 0.1),
        ("latent_attn", 100, 0.1),
        ("conv(k=20)", 40, 0.0),
        ("persistent_conv(k=20)", 40, 0.0),
        ("cgru(k=20)", 40, 0.0),
        ("highway_conv(k=20)", 40, 0.0),
        ("lstm(layers=2)", 100, 0.0),
    ],
)
def test_a_step_holds_on_a_gpu_a_byte_for_each_number_that_may_drop(
    mixer, length, attention_dropout, monkeypatch
):
    compute_as_a_gpu(monkeypatch)
    settings = shaped(mixer, 128, length, 8 if length > 40 else 32, dropout=0.1)
    settings = changed(settings, "model", attention_dropout=attention_dropout)
    measured = peak_bytes(Training(settings, torch.device("cpu")))
    assert step_memory(settings, device="gpu").total == pytest.approx(measured, rel=0.1)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # the compiler's own
@pytest.mark.parametrize("block", ["all_attn(N=40, span=150, adaptive=true)", "sa(span=90)"])
def test_a_gpu_keeps_scores_by_distance_of_windows_that_drop_no_weights(block, monkeypatch):
    monkeypatch.setattr(flex_attention, "_validate_device", lambda *_: None)  # or it has no gradients here
    torch.compiler.reset()
    monkeypatch.setattr(window_attention, "compute_window", lambda form, given, _: fused_window(form, given))
    recipe, model = f"{block} >> ff(8)", {"d_model": 32, "vocab": 9, "causal": True, "dropout": 0.0}
    built, found = build(recipe, **model), analyse(recipe, **model, length=200, device="gpu")
    for each in built.modules():
        if isinstance(each, window_attention.AdaptiveSpans):
            each.note(1.0)
    saved = saved_bytes(built, batch=3, length=200)
    assert found.memory(3).activations == pytest.approx(saved, rel=0.02)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize(
    "mixer", ["sa", "sa(span=50)", "conv(k=5)", "highway_conv(k=5)", "gru", "sa + conv(k=5)"]
)
def test_what_a_step_holds_on_a_gpu_is_within_a_fifth_of_what_torch_allocates_there(mixer, dropout):
    settings = shaped(mixer, 512, 60, 256, dropout=dropout)
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
    assert step_memory(settings, device="gpu").total == pytest.approx(measured, rel=0.2)
