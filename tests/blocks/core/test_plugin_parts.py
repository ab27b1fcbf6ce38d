"""A plug-in makes new modules in each call, and one that returns an earlier module is refused by name."""

import pytest
import torch

from activemem import PluginError, load_study, run_study
from activemem.blocks import build
from activemem.blocks.testing import frame_conformance, plugin_checks
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
COUNTER = torch.nn.Tanh()
COUNTER.register_buffer("steps", STEPS)

class Scaled(torch.nn.Module):
    def __init__(self, gain):
        super().__init__()
        self.gain = gain
    def forward(self, x):
        return x * self.gain

class Mapped(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function, self.past = function, 0
    def forward(self, x):
        self.past += 1
        return self.function(self, x)

def fail(error):
    raise error

ONES = Mapped(lambda self, x: torch.ones(len(x), 8))

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


@pytest.mark.parametrize("changes", [{}, {"NORM": "ACTIVATION", "POSITION": "ONES"}])
def test_new_and_shared_and_stateless_modules_are_built_again_and_again(load, changes):
    load(**changes)
    for _ in range(2):
        build("2 * (reused_block >> tied(2 * reused_block))", **SETTINGS)(torch.ones(1, 3, dtype=torch.int64))


@pytest.mark.parametrize(
    ("changed", "module", "told"),
    [
        ("NORM", "NORM", "norm 'reused_norm'"),
        ("NORM", "Scaled(GAIN)", "norm 'reused_norm'"),
        ("NORM", "torch.nn.Sequential(NORM)", "norm 'reused_norm'"),
        ("NORM", "COUNTER", "norm 'reused_norm'"),
        ("POSITION", "TABLE", "position 'reused_position'"),
        ("MAP", "MAP", "block 'reused_block'"),
    ],
)
def test_a_module_or_a_parameter_of_an_earlier_call_is_refused_before_anything_trains(
    load, tmp_path, changed, module, told
):
    load(**{changed: module})
    told = rf"^reusing\.py: {told} returns the same parameters or buffers twice: make new modules"
    refuse_training(tmp_path, told)


def refuse_training(folder, told):
    """Check that a run of the plug-in's parts is refused with this message before anything trains."""
    model = {"recipe": "{mixer}", **{name: SETTINGS[name] for name in ("d_model", "norm_kind", "position")}}
    text = study_text(
        model=model,
        task={"name": "sort"},
        train={"curriculum": None, "lengths": [2, 4], "epochs": 1},
        factors={"mixer": ["reused_block"]},
    )
    store = Store(folder / "results")
    with pytest.raises(PluginError, match=told):
        run_study(load_study(text), store, Machine(data=folder), local=True)
    assert store.trials().is_empty()


ALONE = "in {} mode an output depends on other vectors than its own input: a norm must map each vector alone"


@pytest.mark.parametrize(
    ("changed", "function", "told"),
    [
        ("NORM", "x - x.mean(-2, keepdim=True)", ALONE.format("evaluation")),
        ("NORM", "x - x.mean(0) if self.training else x", ALONE.format("training")),
        ("NORM", "x * self.past", ALONE.format("evaluation")),
        ("NORM", "x[..., 1:]", r"expected an output of shape \(1, 1, 8\), got \(1, 1, 7\)"),
        ("NORM", "x.double()", "expected an output of torch.float32, like the input, got torch.float64"),
        ("NORM", "x / 0", "expected finite numbers for random vectors"),
        ("NORM", "x / x.norm(dim=-1, keepdim=True)", "expected finite numbers for a vector of zeros"),
        ("POSITION", "torch.ones(8)", r"expected an output of shape \(40, 8\), got \(8,\)"),
        ("POSITION", "x[:, None] / torch.zeros(8)", "expected finite numbers for positions 0 to 39"),
        ("POSITION", "0.0", r"expected a tensor of shape \(40, 8\), got 0.0"),
        (
            "POSITION",
            "torch.randn(len(x), 8)",
            "in evaluation mode a position's vector differs from call to call",
        ),
    ],
)
def test_a_norm_that_mixes_vectors_and_outputs_of_another_shape_are_refused_before_anything_trains(
    load, tmp_path, changed, function, told
):
    load(**{changed: f"Mapped(lambda self, x: {function})"})
    refuse_training(tmp_path, rf"^reusing\.py: {changed.lower()} 'reused_{changed.lower()}': {told}")


@pytest.mark.parametrize(
    "module", ["torch.nn.LayerNorm(8)", "torch.nn.Sequential(Scaled(2), torch.nn.Dropout())"]
)
def test_a_norm_may_draw_noise_from_torch_s_generator(load, module):
    load(NORM=module)
    for check in (frame_conformance.norm_keeps_shapes, frame_conformance.norm_sees_one_vector):
        check("reused_norm", 8)


@pytest.mark.parametrize("error", ["AssertionError", "RuntimeError"])
def test_norms_and_positions_that_cannot_run_on_the_cpu_are_left_to_training(load, error):
    needs_gpu = f"Mapped(lambda self, x: fail({error}('this needs a GPU')))"
    load(NORM=needs_gpu, POSITION=needs_gpu)
    plugin_checks.check_plugin_norm("reused_norm", width=8)
    plugin_checks.check_plugin_position("reused_position", width=8)


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_positions_may_be_computed_in_single_precision(load, scale):
    numbers = f"Mapped(lambda self, x: {scale} * x.float()[:, None])"
    layers = "torch.nn.Linear(1, 64), torch.nn.GELU(), torch.nn.Linear(64, width)"
    load(POSITION=f"torch.nn.Sequential({numbers}, {layers})")
    plugin_checks.check_plugin_position("reused_position", width=8)


def test_something_other_than_a_module_is_refused_by_name(load):
    load(NORM="None")
    with pytest.raises(PluginError, match=r"^reusing.py: norm 'reused_norm': TypeError: .*Module, got None$"):
        build("reused_block", **SETTINGS)
