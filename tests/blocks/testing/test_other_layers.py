"""A layer of another package is compared with a block: weights, outputs, gradients, initial weights."""

import os
import re

import pytest

from activemem.blocks.testing import (
    OtherLayer,
    OtherLayerError,
    compare_initial_weights,
    compare_weights,
    compare_with_layer,
    parse_block,
    verify_block,
)
from activemem.grammar.vocabulary import spec_of

BLOCK = "glu(10)"
PROGRAM = """
import logging

import torch
from torch import nn

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

class Warned(Gated):
    def __init__(self, hidden_size):
        super().__init__(hidden_size)
        logging.getLogger("gated_program").warning("may contain bugs")

class Short(Gated):
    def __init__(self, hidden_size):
        super().__init__(hidden_size)

    def forward(self, x):
        if x.shape[1] > 64:
            raise ValueError("at most 64")
        return super().forward(x)

class Broken(Gated):
    def __init__(self, hidden_size):
        super().__init__(hidden_size)

    def forward(self, x):
        raise RuntimeError("needs a GPU")

class More(Gated):
    def __init__(self, hidden_size):
        super().__init__(hidden_size)
        self.temperature = nn.Parameter(torch.ones(3))
"""


@pytest.fixture
def compare(tmp_path, monkeypatch):
    """Return a function that compares the block with a class of the program `gated_program`."""
    (tmp_path / "gated_program.py").write_text(PROGRAM, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    node = parse_block(BLOCK)

    def compare(check, text):
        return check(node, OtherLayer.read(text, spec_of(node.name).settings(node), width=8))

    return compare


def test_an_equal_layer_has_equal_outputs_and_its_rule_of_initial_weights_is_named(compare, golden):
    passed, finding = compare(compare_with_layer, "gated_program.Gated")
    assert passed
    assert finding.startswith("outputs at lengths 1, 7, 33, 64, 65, 130 within ")
    passed, finding = compare(compare_weights, "gated_program.Gated")
    golden(finding)
    passed, finding = compare(compare_initial_weights, "gated_program.Gated")
    assert passed
    assert finding.startswith('equally distributed with [model] init = "uniform" (2 weights, ')


def test_a_warning_of_the_other_package_is_logged_once(compare, caplog):
    assert compare(compare_initial_weights, "gated_program.Warned")[0]
    assert [record.message for record in caplog.records] == ["may contain bugs"]


def test_a_wrong_initialisation_is_found_although_outputs_are_equal(compare):
    assert compare(compare_with_layer, "gated_program.Gated(std=0.02)")[0]
    passed, finding = compare(compare_initial_weights, "gated_program.Gated(std=0.02)")
    assert not passed
    assert "another distribution: inner (" in finding


def test_a_layer_that_computes_something_else_fails(compare):
    passed, finding = compare(compare_with_layer, "gated_program.Gated(slope=1.01)")
    assert not passed
    assert "expected 1e-04" in finding


def test_lengths_that_a_layer_does_not_run_at_are_named_once_with_their_reason(compare):
    passed, finding = compare(compare_with_layer, "gated_program.Short")
    assert passed
    assert finding.startswith("outputs at lengths 1, 7, 33, 64 within ")
    left_out = [rf" .*at {lengths} \(ValueError: at most 64\)" for lengths in ("65, 130", "65")]
    assert re.search(f"; outputs{left_out[0]}; gradients at lengths 7 .*; gradients{left_out[1]}$", finding)


def test_a_layer_without_a_counterpart_of_its_weights_is_not_called_wrong(compare):
    passport = verify_block(BLOCK, against="gated_program.More", width=8)
    assert [check.name for check in passport.checks][-2:] == ["in training", "weights as theirs"]
    assert (passport.passed, passport.comparable, passport.checks[-1].passed) == (True, False, None)
    assert passport.checks[-1].finding.startswith("cannot be compared: ")


def test_a_layer_that_runs_at_no_length_is_not_called_wrong(compare):
    passport = verify_block(BLOCK, against="gated_program.Broken", width=8)
    (found,) = (check for check in passport.checks if check.name == "outputs as theirs")
    assert (found.passed, passport.comparable) == (None, False)
    assert found.finding.endswith(" 1, 7, 33, 64, 65, 130 (RuntimeError: needs a GPU)")


@pytest.mark.parametrize(
    ("block", "arguments"),
    [
        ("ssd(heads=2, head_width=16, state=16, head_norm=none)", "rmsnorm=False"),
        ("ssd(heads=1, head_width=32, state=16)", "norm_before_gate=True"),
    ],
)
@pytest.mark.filterwarnings("ignore")  # of the package, that its kernels run without a GPU
def test_the_single_map_of_mamba_2_is_read_row_by_row(block, arguments):
    pytest.importorskip("fla", reason="not among what the tests install")
    if "norm_before" in arguments and os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("needs TRITON_INTERPRET=1")
    node = parse_block(block)
    text = f"fla.layers.Mamba2({arguments})"
    layer = OtherLayer.read(text, spec_of(node.name).settings(node), width=32)
    passed, finding = compare_with_layer(node, layer)
    assert passed
    assert "outputs at lengths 1, 7, 33, 64, 65, 130 within" in finding
    assert "gradients at lengths 7, 65 within" in finding


def test_weights_without_a_counterpart_are_named(compare, golden):
    with golden.raises(OtherLayerError):
        compare(compare_weights, "gated_program.More")


@pytest.mark.parametrize(
    "text",
    [
        "gated_program.Gate",
        "no_such_package.Layer",
        "Gated",
        "gated_program.Gated(8)",
        "gated_program.Gated(inner=[])",
    ],
)
def test_a_layer_that_cannot_be_had_is_refused_with_the_reason(compare, text, golden):
    with golden.raises(OtherLayerError):
        compare(compare_with_layer, text)
