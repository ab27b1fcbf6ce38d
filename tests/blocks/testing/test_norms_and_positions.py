"""Norms and positions conform, including plug-ins, and the suites detect violations."""

import random
from functools import partial

import pytest
import torch

from activemem import PluginNorm, PluginPosition, register_norm, register_position
from activemem.blocks import BuildError, Embedding, build
from activemem.blocks.testing import frame_conformance
from activemem.grammar import analyse
from activemem.grammar.norms import NORMS
from activemem.grammar.positions import POSITIONS
from activemem.plugins import PluginError

from ...registry_entries import replace_entry


class RmsNorm(PluginNorm):
    def build(self, width, eps):
        return torch.nn.RMSNorm(width, eps)


class Learnt(PluginPosition):
    longest = 64

    def build(self, width):
        return Embedding(64, width)


@pytest.fixture(autouse=True, scope="module")
def _registered():
    """Register the example norm and the example positions during the tests of this file."""
    register_norm("test_rms", source="Zhang and Sennrich 2019")(RmsNorm)
    register_position("test_learnt", source="Gehring et al. 2017")(Learnt)
    yield
    NORMS.unregister("test_rms")
    POSITIONS.unregister("test_learnt")


@pytest.mark.parametrize("check", frame_conformance.NORM_CHECKS)
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "test_rms"])
def test_a_norm_conforms(name, check):
    check(name)


@pytest.mark.parametrize("check", frame_conformance.POSITION_CHECKS)
@pytest.mark.parametrize("name", ["timing", "learned", "randomised", "test_learnt"])
def test_positions_conform(name, check):
    check(name)


class Flawed(RmsNorm):
    """A norm with one of several flaws, which the suite must find."""

    make = staticmethod(torch.nn.RMSNorm)

    def build(self, width, eps):
        return self.make(width, eps)


class OverPositions(torch.nn.Module):
    """A norm over all positions."""

    def __init__(self, width, eps):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * x / (1 + x.abs().mean(1, keepdim=True))


FLAWS = {
    "norm_sees_one_vector": {"make": staticmethod(OverPositions)},
    "norm_has_no_products": {"make": staticmethod(lambda width, _eps: torch.nn.Linear(width, width))},
    "norm_keeps_shapes": {"make": staticmethod(lambda width, _eps: torch.nn.RMSNorm(width, 0.0))},
}


@pytest.mark.parametrize("check", FLAWS)
def test_the_suite_finds_violations_of_a_norm(check, monkeypatch):
    flawed = type("Flawed", (Flawed,), FLAWS[check])
    replace_entry(NORMS, "test_rms", flawed())
    with pytest.raises(AssertionError):
        getattr(frame_conformance, check)("test_rms")


@pytest.mark.parametrize(
    ("check", "changes"),
    [
        (frame_conformance.positions_are_distinct, {"build": lambda self, width: ByParity(width)}),
        (
            partial(frame_conformance.seed_decides, "position"),
            {"build": lambda self, width: Unseeded(width)},
        ),
    ],
)
def test_the_suite_finds_violations_of_positions(check, changes, monkeypatch):
    replace_entry(POSITIONS, "test_learnt", type("Flawed", (Learnt,), changes)())
    with pytest.raises(AssertionError):
        check("test_learnt")


class Unseeded(Embedding):
    """Position vectors that no seed decides."""

    def __init__(self, width):
        super().__init__(64, width)
        self.offset = random.random()

    def forward(self, positions):
        return super().forward(positions) + self.offset


class ByParity(torch.nn.Module):
    """Position vectors that depend only on parity."""

    def __init__(self, width):
        super().__init__()
        self.table = Embedding(64, width)

    def forward(self, positions):
        return self.table(positions % 2)


def test_a_class_that_lacks_something_is_reported_with_all_of_it(golden):
    with golden.raises(ValueError):
        register_norm("bare", source="here")(type("Bare", (PluginNorm,), {}))
    assert "bare" not in NORMS


def test_a_module_that_cannot_be_built_is_reported_with_its_line_and_name(monkeypatch):
    monkeypatch.setattr(RmsNorm, "build", lambda self, width, eps: {}["no rms here"])
    told = r"^test_norms_and_positions.py:\d+: norm 'test_rms': KeyError: 'no rms here'$"
    with pytest.raises(PluginError, match=told):
        build("ff(8)", d_model=6, vocab=5, norm_kind="test_rms")


def test_a_model_of_two_sequences_has_them_in_both_stacks(golden):
    text = "seq2seq(sa(heads=2) >> ff(9), sa(heads=2) >> ff(9))"
    settings = {"d_model": 6, "vocab": 5, "norm_kind": "test_rms", "position": "test_learnt"}
    model = build(text, **settings)
    counted = sum(parameter.numel() for parameter in model.parameters())
    assert counted == analyse(text, length=7, **settings).parameters
    with golden.raises(BuildError):
        model(torch.ones(1, 65, dtype=torch.int64), torch.ones(1, 3, dtype=torch.int64))
