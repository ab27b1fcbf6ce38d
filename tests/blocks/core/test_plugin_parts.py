"""A plug-in makes new modules in each call, and one that returns an earlier module is refused by name."""

import pytest
import torch

from activemem import PluginError, load_study, run_study
from activemem.blocks import build
from activemem.engine import Machine
from activemem.plugins import load_plugin, unload_plugin
from activemem.storage import Store

from ...study_texts import study_text

PLUGIN = """
from copy import deepcopy
import torch
from activemem import Block, PluginNorm, PluginPosition, register_block, register_norm, register_position

NORM, TABLE, MAP = torch.nn.LayerNorm(8), torch.nn.Embedding(40, 8), torch.nn.Linear(8, 8)
GAIN, ACTIVATION, STEPS = torch.nn.Parameter(torch.ones(8)), torch.nn.Tanh(), torch.arange(4)

class Scaled(torch.nn.Module):
    def __init__(self, gain):
        super().__init__()
        self.gain = gain
    def forward(self, x):
        return x * self.gain

@register_norm("reused_norm", source="here")
class Norm(PluginNorm):
    def build(self, width, eps):
        return NEW_NORM

@register_position("reused_position", source="here")
class Position(PluginPosition):
    longest = 40
    def build(self, width):
        return NEW_POSITION

@register_block("reused_block", parameters=())
class Mixer(Block):
    def __init__(self, settings, context):
        super().__init__()
        self.register_buffer("steps", STEPS)
        self.activation, self.map = ACTIVATION, NEW_MAP
    def forward(self, x, mask=None):
        return self.activation(self.map(x))
"""
NEW = {
    "NORM": "deepcopy(NORM)",
    "POSITION": "torch.nn.Embedding(40, width)",
    "MAP": "context.share('map', lambda: torch.nn.Linear(8, 8))",
}
SETTINGS = {"d_model": 8, "vocab": 5, "norm_kind": "reused_norm", "position": "reused_position"}


@pytest.fixture
def load(tmp_path):
    """Return a function that loads the plug-in with some of its modules replaced."""

    def load_with(**changes):
        text = PLUGIN
        for name, value in (NEW | changes).items():
            text = text.replace(f"NEW_{name}", value)
        (tmp_path / "reusing.py").write_text(text, encoding="utf-8")
        load_plugin(tmp_path / "reusing.py")

    yield load_with
    unload_plugin(tmp_path / "reusing.py")


def test_new_modules_and_copies_and_modules_that_a_model_shares_are_built_again_and_again(load):
    load()
    for _ in range(2):
        build("2 * (reused_block >> tied(2 * reused_block))", **SETTINGS)(torch.ones(1, 3, dtype=torch.int64))


@pytest.mark.parametrize(
    ("changed", "module", "told"),
    [
        ("NORM", "NORM", "norm 'reused_norm'"),
        ("NORM", "Scaled(GAIN)", "norm 'reused_norm'"),
        ("NORM", "torch.nn.Sequential(NORM)", "norm 'reused_norm'"),
        ("POSITION", "TABLE", "position 'reused_position'"),
        ("MAP", "MAP", "block 'reused_block'"),
    ],
)
def test_a_module_or_a_parameter_of_an_earlier_call_is_refused_before_anything_trains(
    load, tmp_path, changed, module, told
):
    load(**{changed: module})
    model = {"recipe": "{mixer}", **{name: SETTINGS[name] for name in ("d_model", "norm_kind", "position")}}
    text = study_text(
        model=model,
        task={"name": "sort"},
        train={"curriculum": None, "lengths": [2, 4], "epochs": 1},
        factors={"mixer": ["reused_block"]},
    )
    store = Store(tmp_path / "results")
    told = rf"^reusing\.py: {told} returns the same module or the same parameters twice: make new ones"
    with pytest.raises(PluginError, match=told):
        run_study(load_study(text), store, Machine(data=tmp_path), local=True)
    assert store.trials().is_empty()


def test_something_other_than_a_module_is_refused_by_name(load):
    load(NORM="None")
    with pytest.raises(PluginError, match=r"^reusing.py: norm 'reused_norm': TypeError: .*Module, got None$"):
        build("reused_block", **SETTINGS)
