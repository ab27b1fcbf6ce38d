"""μP: its effect on a model and its rates."""

import pytest
import torch

from activemem import StudyError, load_study
from activemem.blocks import build
from activemem.engine.optimisers.build import build_optimizer
from activemem.studies.catalog.optimisers import OwnOptimizerSettings

TEXT = """
[study]
name = "widths"
title = "Widths"

[model]
recipe = "sa(heads=2, head_width={head}) >> ff({filter})"
d_model = "{width}"
embedding = "unit"
position = "none"
dropout = 0.0
mup = 16

[ladder]
sizes = { width = [16, 64, 128], head = [8, 32, 64], filter = [32, 128, 256] }
tokens_per_parameter = 0.01

[task]
name = "word_problem"
lengths = [8, 8]

[train]
optimizer = { name = "adam", lr = 1e-2 }
batch_size = 16
epochs = 1
"""


def test_only_maps_of_the_body_learn_more_slowly():
    model = build("ff(128)", d_model=64, vocab=5, embedding="unit", mup=16)
    optimizer = build_optimizer(OwnOptimizerSettings(name="adam", lr=1.0), model)
    rates = {weight: group["lr"] for group in optimizer.param_groups for weight in group["params"]}
    slow = {name for name, weight in model.named_parameters() if rates[weight] == 0.25}
    assert slow == {name for name, weight in model.named_parameters() if "body" in name and weight.dim() > 1}
    assert {rates[weight] for name, weight in model.named_parameters() if name not in slow} == {1.0}


@pytest.mark.parametrize(
    ("recipe", "mapped"),
    [
        ("delta(heads=4, head_width=16, gate=true, short_conv=4)", {"qkv", "beta", "rates.map", "output"}),
        ("kda(heads=4, head_width=16)", {"qkv", "gate", "beta", "rates.map.0", "rates.map.1", "output"}),
        ("rg_lru(heads=4, head_width=8)", {"input", "gate", "output"}),
        ("rg_lru(heads=4, head_width=16)", {"input", "gate", "gates", "output"}),
        ("slstm(heads=4, head_width=8)", {"input", "output"}),
        (
            "hyena(channels=64, k=9)",
            {"input", *(f"filters.maps.{n}" for n in range(3)), "filters.output", "output"},
        ),
        ("persistent_conv(k=4)", {"convolution"}),
        ("sa(heads=4, head_width=16, pos=relative, span=20)", {"qkv", "output"}),
        ("lstm", {"layers.0"}),
    ],
)
def test_weights_of_single_channels_learn_at_the_rate_of_the_training(recipe, mapped):
    model = build(recipe, d_model=64, vocab=5, embedding="unit", mup=16, causal=True)
    optimizer = build_optimizer(OwnOptimizerSettings(name="adam", lr=1.0), model)
    slow = {weight for group in optimizer.param_groups if group["lr"] == 0.25 for weight in group["params"]}
    found = {name.rpartition(".")[0] for name, weight in model.named_parameters() if weight in slow}
    assert {name.removeprefix("body.layers.0.part.") for name in found} == mapped


def test_at_its_own_width_a_model_is_as_without_and_its_output_is_scaled_elsewhere():
    def outputs(mup, width=32):
        made = build(
            "ff(64)", d_model=width, vocab=5, embedding="unit", dropout=0.0, mup=mup,
            generator=torch.Generator().manual_seed(0),
        )  # fmt: skip
        return made.eval()(torch.arange(5)[None]), made

    assert torch.equal(outputs(None)[0], outputs(32)[0])
    wide, model = outputs(8)
    drawn, scaled = outputs(None)[1].output.weight.detach(), model.output.weight.detach()
    assert torch.allclose(drawn * (37 / 13) ** 0.5, scaled)
    assert wide.abs().mean() < outputs(None)[0].abs().mean()


def test_settings_that_conflict_with_mup_are_reported(golden):
    def told(text):
        with pytest.raises(StudyError) as caught:
            load_study(text)
        return [fault.message for fault in caught.value.faults]

    golden(told(TEXT.replace('embedding = "unit"\n', "").replace('"adam"', '"muon"')))
