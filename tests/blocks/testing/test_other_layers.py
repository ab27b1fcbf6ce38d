"""A layer of another package is compared with a block: weights, outputs, gradients, initial weights.

The layers of flash-linear-attention are those of docs/reference/passports.md. Without a GPU they need
TRITON_INTERPRET=1 in the environment.
"""

import re
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from activemem.blocks.testing.fixtures import parse_block
from activemem.grammar.vocabulary.spec import spec_of

from .other_layers import (
    OtherLayer,
    OtherLayerError,
    compare_initial_weights,
    compare_weights,
    compare_with_layer,
)


class Gated(nn.Module):
    def __init__(self, hidden_size, inner=10, std=None, slope=1.0):
        super().__init__()
        self.slope = slope
        self.gate_up = nn.Linear(hidden_size, 2 * inner, bias=False)
        self.down = nn.Linear(inner, hidden_size)
        if std is not None:
            nn.init.normal_(self.gate_up.weight, std=std)

    def forward(self, x):
        gate, up = self.gate_up(x).chunk(2, -1)
        return self.down(self.slope * nn.functional.silu(gate) * up), None


class Short(Gated):
    def forward(self, x):
        if x.shape[1] > 64:
            raise ValueError("at most 64")
        return super().forward(x)


class Broken(Gated):
    def forward(self, x):
        raise RuntimeError("needs a GPU")


class More(Gated):
    def __init__(self, hidden_size):
        super().__init__(hidden_size)
        self.temperature = nn.Parameter(torch.ones(3))


def compare(check, kind, block="glu(10)", width=8, **given):
    """Compare a block with a layer of this class by one of the checks."""
    node = parse_block(block)
    return check(node, OtherLayer.of(kind, spec_of(node.name).settings(node), width=width, **given))


def test_an_equal_layer_has_equal_outputs_and_its_rule_of_initial_weights_is_named(golden):
    passed, finding = compare(compare_with_layer, Gated)
    assert passed
    assert finding.startswith("outputs at lengths 1, 7, 33, 64, 65, 130 within ")
    passed, finding = compare(compare_weights, Gated)
    golden(finding)
    passed, finding = compare(compare_initial_weights, Gated)
    assert passed
    assert finding.startswith('equally distributed with [model] init = "uniform" (2 weights, ')


def test_a_wrong_initialisation_is_found_although_outputs_are_equal():
    assert compare(compare_with_layer, Gated, std=0.02)[0]
    passed, finding = compare(compare_initial_weights, Gated, std=0.02)
    assert not passed
    assert "another distribution: inner (" in finding


def test_a_layer_that_computes_something_else_fails():
    passed, finding = compare(compare_with_layer, Gated, slope=1.01)
    assert not passed
    assert "expected 1e-04" in finding


def test_lengths_that_a_layer_does_not_run_at_are_named_once_with_their_reason():
    passed, finding = compare(compare_with_layer, Short)
    assert passed
    assert finding.startswith("outputs at lengths 1, 7, 33, 64 within ")
    left_out = [rf" .*at {lengths} \(ValueError: at most 64\)" for lengths in ("65, 130", "65")]
    assert re.search(f"; outputs{left_out[0]}; gradients at lengths 7 .*; gradients{left_out[1]}$", finding)


def test_a_layer_that_runs_at_no_length_is_not_called_wrong():
    with pytest.raises(OtherLayerError, match=r" 1, 7, 33, 64, 65, 130 \(RuntimeError: needs a GPU\)$"):
        compare(compare_with_layer, Broken)


def test_weights_without_a_counterpart_are_named(golden):
    with golden.raises(OtherLayerError):
        compare(compare_weights, More)


RECURRENT = "heads=2, head_width=16"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the package, that its kernels run without a GPU
@pytest.mark.parametrize(
    ("block", "layer", "given"),
    [
        (f"fox({RECURRENT})", "ForgettingAttention", {}),
        ("mamba(channels=64)", "Mamba", {}),
        (f"gla({RECURRENT})", "GatedLinearAttention", {"expand_k": 1.0}),
        (f"delta({RECURRENT}, short_conv=4)", "DeltaNet", {}),
        (
            f"delta({RECURRENT}, gate=true, short_conv=4, output_gate=silu)",
            "GatedDeltaNet",
            {"expand_v": 1.0},
        ),
        (f"kda({RECURRENT})", "KimiDeltaAttention", {}),
        (
            f"linear_attn({RECURRENT}, head_norm=rms)",
            "LinearAttention",
            {
                "feature_map": "elu",
                "output_norm": "rmsnorm",
                "norm_q": False,
                "do_feature_map_norm": True,
            },
        ),
        (f"ssd({RECURRENT}, state=16, head_norm=none)", "Mamba2", {"rmsnorm": False}),
        ("ssd(heads=1, head_width=32, state=16)", "Mamba2", {"norm_before_gate": True}),
    ],
)
def test_layers_of_flash_linear_attention_compute_the_same(block, layer, given, monkeypatch):
    layers = pytest.importorskip("fla.layers", reason="not among what the tests install")
    if not torch.cuda.is_available() and find_spec("triton"):
        # Triton's tuner measures kernels through a driver; here all choices of sizes take the same time
        driver = SimpleNamespace(get_benchmarker=lambda: lambda _call, **_options: [0.0, 0.0, 0.0])
        import_module("triton.runtime").driver.set_active(driver)
    passed, finding = compare(compare_with_layer, getattr(layers, layer), block, 32, **given)
    assert passed, finding
    passed, finding = compare(compare_initial_weights, getattr(layers, layer), block, 32, **given)
    assert passed, finding
