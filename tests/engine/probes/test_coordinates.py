"""μP: its effect on a model and its rates, and the coordinate check."""

import pytest
import torch

from activemem import StudyError, load_study
from activemem.blocks import build
from activemem.engine.optimisers import build_optimizer
from activemem.engine.probes import (
    CoordinateError,
    LayerChange,
    ModelCoordinates,
    StudyCoordinates,
    check_coordinates,
)
from activemem.studies.catalog import OwnOptimizerSettings

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


def checked_model(text):
    (found,) = check_coordinates(load_study(text), steps=4).models
    return found


@pytest.fixture(scope="module")
def checked():
    return checked_model(TEXT)


def test_with_maximal_updates_changes_are_flat_and_without_they_grow(checked):
    assert [each.layer for each in checked.layers] == ["embedding", "layer 1", "layer 2", "output"]
    assert (checked.verdict.partition(":")[0], checked.flat) == ("flat", True)
    plain = checked_model(TEXT.replace("mup = 16\n", ""))
    assert plain.verdict.startswith("growing: layer 1, layer 2")
    assert plain.layers[1].exponent > 0.5 > abs(checked.layers[1].exponent) + 0.2


def test_the_check_is_printed_by_layer_and_width(checked, golden):
    lines = str(StudyCoordinates(study="widths", steps=4, models=(checked,))).splitlines()
    golden(lines[0])
    assert lines[2].split() == ["16", "64", "128", "exponent"]
    golden(lines[-1])


def test_layers_whose_changes_shrink_with_width_are_reported_next_to_those_that_grow():
    exponents = {"embedding": -0.88, "layer 1": 1.2, "layer 2": -0.3, "output": -0.51}
    found = [
        LayerChange(layer=name, changes={8: 1.0, 16: 1.0}, exponent=each) for name, each in exponents.items()
    ]
    told = ModelCoordinates(model="", flat=False, layers=tuple(found)).verdict
    assert told == "growing: layer 1; shrinking: embedding, output"


def test_many_widths_are_below_each_other_within_80_columns():
    changes = dict.fromkeys(range(8, 88, 8), 0.0123)
    many = (LayerChange(layer=name, changes=changes, exponent=-0.5) for name in ("embedding", "layer 1"))
    model = ModelCoordinates(model="", flat=True, layers=tuple(many))
    lines = str(StudyCoordinates(study="widths", steps=5, models=(model,))).splitlines()
    assert max(map(len, lines)) <= 80
    assert [word for line in (lines[2], lines[5]) for word in line.split()] == [
        *map(str, changes),
        "exponent",
    ]


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


def test_settings_that_conflict_with_mup_or_its_check_are_reported(golden):
    def told(text):
        with pytest.raises(StudyError) as caught:
            load_study(text)
        return [fault.message for fault in caught.value.faults]

    golden(told(TEXT.replace('embedding = "unit"\n', "").replace('"adam"', '"muon"')))
    with pytest.raises(CoordinateError, match="has no \\[ladder\\]"):
        check_coordinates(load_study("quickstart"))
    with golden.raises(CoordinateError):
        checked_model(TEXT.replace("lr = 1e-2", "lr = 1e30"))
    with golden.raises(CoordinateError):
        checked_model(
            TEXT.replace('"sa(', '"{depth} * sa(').replace("sizes = {", "sizes = { depth = [1, 1, 2],")
        )
