"""The block `fla`: read without its package; built, measured and trained with it."""

import os
import sys
from importlib.metadata import distributions
from types import SimpleNamespace

import pytest
import torch
from torch.testing import assert_close

from activemem import ActivememError, PluginError, Space, StudyResults, block, load_plugin, run_study
from activemem.blocks import Context, build, build_block
from activemem.blocks.core.initialisation import initialise
from activemem.blocks.testing.fixtures import make_generator, parse_block, random_sequences
from activemem.blocks.testing.passport import verify_block
from activemem.grammar import RecipeError, analyse, configure, parse
from activemem.storage import Store
from activemem.studies import StudyError, load_study

from ..study_texts import study_text


@pytest.fixture(autouse=True)
def plugin():
    load_plugin("fla")


GLA = "fla(layer=GatedLinearAttention, expand_k=1.0, num_heads=2)"
OURS = "gla(heads=2, head_width=16)"
FAULT = "FLOPs of fla leave out the kernels of flash-linear-attention"
FIXED = {"curriculum": None, "lengths": [10, 10]}
COURSE = {"name": "c", "kind": "line", "value": "dev_loss", "x": "flops", "series": "mixer"}

HAS_PACKAGE = any(each.name == "flash-linear-attention" for each in distributions())
installed = pytest.mark.skipif(not HAS_PACKAGE, reason="needs the package flash-linear-attention")
runs = pytest.mark.skipif(
    not HAS_PACKAGE or os.environ.get("TRITON_INTERPRET") != "1",
    reason="needs the package flash-linear-attention and TRITON_INTERPRET=1",
)


def test_further_arguments_are_read_in_alphabetical_order_and_can_be_holes(golden):
    recipe = parse("fla(num_heads=2, mode=chunk, layer=DeltaNet, use_gate=true, expand_v=1.0)")
    assert recipe.text == "fla(layer=DeltaNet, expand_v=1.0, mode=chunk, num_heads=2, use_gate=true)"
    assert block("fla")(layer="DeltaNet", num_heads=2).text == "fla(layer=DeltaNet, num_heads=2)"
    assert parse("fla(layer={layer}, num_heads={n})").holes == ("layer", "n")
    dimensions = parse("fla(layer=choice(DeltaNet, GatedDeltaNet), num_heads=integer(1, 2))")
    assert {recipe.text for recipe in Space(dimensions)} == {
        f"fla(layer={layer}, num_heads={heads})"
        for layer in ("DeltaNet", "GatedDeltaNet")
        for heads in (1, 2)
    }
    with golden.raises(RecipeError):
        parse("fla(layer=3)")


class DeltaNet(torch.nn.Module):
    """A layer in place of one of the package."""

    def __init__(self, hidden_size, num_heads=4, layer_idx=None):
        super().__init__()
        if hidden_size % num_heads:
            raise ValueError("key dim must be divisible by num_heads of 5")
        self.num_heads, self.map = num_heads, torch.nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, x, past_key_values=None, use_cache=False):
        y = self.map(x).cumsum(1)
        if use_cache:
            past_key_values.state = y[:, -1:]
        return y, None, past_key_values


@pytest.fixture
def package(monkeypatch):
    """Put a package of one layer in place of the real one."""
    layers = SimpleNamespace(__all__=["DeltaNet"], DeltaNet=DeltaNet)
    monkeypatch.setitem(sys.modules, "fla.layers", layers)
    monkeypatch.setitem(sys.modules, "fla.models.utils", SimpleNamespace(Cache=SimpleNamespace))


def test_a_layer_is_counted_trained_and_part_of_the_id(package, tmp_path):
    found = analyse("fla(layer=DeltaNet, num_heads=2)", d_model=16, vocab=5, causal=True, length=20)
    assert found.parameters >= 16 * 16
    assert (found.state, found.window) == (0, 16)  # of the cache
    study = small_study("fla(layer=DeltaNet, num_heads=2)")
    run_study(study, tmp_path, local=True)
    assert StudyResults(study, Store(tmp_path)).status.counts == {"done": 1}
    assert study.trials[0].settings.code["block fla"].startswith("fla.py ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fla(layer=DeltNet)", "fla.layers has no 'DeltNet'; nearest: DeltaNet"),
        ("fla(layer=DeltaNet, heads=2)", "fla.layers.DeltaNet has no argument 'heads'; nearest: num_heads"),
        ("fla(layer=DeltaNet, num_heads=5)", "fla.layers.DeltaNet cannot be built at width 32: key dim must"),
    ],
)
def test_a_layer_that_cannot_be_built_is_named_with_the_reason(package, text, message):
    with pytest.raises(PluginError) as caught:
        _ = analyse(text, d_model=32, vocab=5, length=8).parameters
    assert str(caught.value).startswith(message)


@pytest.mark.skipif(HAS_PACKAGE, reason="the package is installed")
def test_without_the_package_its_command_is_named():
    with pytest.raises(PluginError) as caught:
        _ = analyse(GLA, d_model=32, vocab=5, length=8).parameters
    assert str(caught.value).startswith(
        "fla(layer=GatedLinearAttention) needs the package flash-linear-attention: "
        'pip install "activemem[fla]" (No module named '
    )


def test_layers_that_cannot_be_built_are_all_reported_at_their_levels(tmp_path):
    levels = ["fla(layer=GatedDeltaNett)", "lstm", "fla(layer=DeltaNet, num_headz=2)"]
    study = load_study(study_text(factors={"mixer": levels, "task": ["reverse"]}))
    for ask in (lambda: StudyResults(study, Store(tmp_path)).plan(), lambda: run_study(study, tmp_path)):
        with pytest.raises(StudyError) as caught:
            ask()
        faults = caught.value.faults
        assert [each.text[each.start : each.end] for each in faults] == [f'"{levels[0]}"', f'"{levels[2]}"']
        assert all(each.message.startswith("[factors] mixer: fla") for each in faults)


@pytest.mark.parametrize(
    "tables",
    [
        {"study": {"match": "flops", "baseline": {"mixer": OURS, "n": 8}}, "model": {"d_model": "{n}"}},
        {"train": FIXED | {"steps_per_epoch": None, "flops": 1e9}},
        {"train": FIXED, "table": [{"name": "t", "rows": "mixer", "value": "flops"}]},
        {"train": FIXED, "table": [{"name": "t", "rows": "mixer", "value": "flops_to[dev_loss <= 1.0]"}]},
        {"train": FIXED, "curve": [COURSE]},
    ],
    ids=["match", "budget", "cost", "target", "axis"],
)
def test_flops_that_leave_out_kernels_are_compared_nowhere(tables):
    factors = {"mixer": [OURS, GLA], "task": ["reverse"]}
    with pytest.raises(StudyError, match=FAULT):
        load_study(study_text(factors=factors, **tables))


def test_a_layer_that_is_its_own_reference_has_no_passport(golden):
    with golden.raises(ActivememError):
        verify_block(GLA)


@installed
def test_costs_are_those_of_the_layer_with_its_kernels_left_out():
    # the parameters, the convolution-free cache and the state of a head are those of our block
    ours, theirs = (analyse(text, d_model=32, vocab=5, causal=True, length=100) for text in (OURS, GLA))
    assert theirs.parameters == ours.parameters
    assert (theirs.state, theirs.window) == (ours.state, ours.window) == (0, 2 * 16 * 16)
    assert 0.5 * ours.flops < theirs.flops < ours.flops
    assert theirs.memory(4).activations > 0


@installed
def test_what_the_package_does_not_have_is_named_with_the_nearest():
    for text, message in (
        ("fla(layer=DeltNet)", "fla.layers has no 'DeltNet'; nearest: DeltaNet"),
        (
            "fla(layer=DeltaNet, heads=2)",
            "fla.layers.DeltaNet has no argument 'heads'; nearest: num_heads",
        ),
        ("fla(layer=DeltaNet, num_heads=5)", "fla.layers.DeltaNet cannot be built at width 32: key dim must"),
    ):
        with pytest.raises(PluginError) as caught:
            _ = analyse(text, d_model=32, vocab=5, length=8).parameters
        assert str(caught.value).startswith(message)


@installed
@pytest.mark.filterwarnings("ignore")  # of the package, that its kernels run without a GPU
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "fla(layer=RWKV7Attention, head_dim=16)",
            r"RWKV7Attention cannot be built at width 32: .*; without a value: .*num_hidden_layers",
        ),
        (
            "fla(layer=HGRN2Attention)",
            r"fla\.layers\.HGRN2Attention cannot be built at width 32: integer modulo",
        ),
        ("fla(layer=LogLinearMamba2, num_heads=2)", "cannot be measured on torch's meta device"),
        (
            "fla(layer=MomAttention)",
            r"cannot be measured .*: Tensor\.item\(\) cannot be called on meta tensors",
        ),
        ("fla(layer=Mamba3)", ": Mamba-3 currently requires a CUDA device; .*install the packages"),
        (
            "fla(layer=YOCOCrossAttention, num_heads=2)",
            "cannot be measured .* missing 2 required positional arguments",
        ),
    ],
)
def test_a_layer_without_costs_is_named_in_one_line_with_the_reason_and_the_next_step(text, message):
    with pytest.raises(PluginError, match=message) as caught:
        _ = analyse(text, d_model=32, vocab=5, causal=True, length=8).flops
    name = text.removeprefix("fla(layer=").partition(",")[0].rstrip(")")
    assert f"; give other arguments, as in fla(layer={name}, name=value), " in str(caught.value)
    assert str(caught.value).endswith("or name another layer")
    assert "\n" not in str(caught.value)


@installed
@pytest.mark.filterwarnings("ignore")
def test_a_layer_that_torch_compiles_is_measured():
    text = "fla(layer=RWKV7Attention, head_dim=16, num_hidden_layers=2)"
    cost = analyse(text, d_model=32, vocab=5, causal=True, length=8)
    assert cost.parameters > 0 and cost.memory(2).activations > 0 and cost.window > 0


@installed
def test_weights_depend_on_the_seed_alone():
    before = torch.get_rng_state()
    one, same, other = (build(GLA, vocab=5, d_model=32, generator=make_generator(seed)) for seed in (1, 1, 2))
    assert torch.get_rng_state().equal(before)
    for name, weight in one.named_parameters():
        assert weight.equal(dict(same.named_parameters())[name])
    assert any(
        not weight.equal(dict(other.named_parameters())[name]) for name, weight in one.named_parameters()
    )


@runs
@pytest.mark.parametrize("layer", ["GatedLinearAttention", "DeltaNet", "ForgettingAttention"])
def test_no_output_sees_a_later_input_and_each_parameter_has_a_gradient(layer):
    made = build_block(
        parse_block(f"fla(layer={layer}, num_heads=2)"), Context(config=configure(d_model=32, causal=True))
    )
    initialise(made, make_generator(0))
    x = random_sequences(1, 12, width=32, dtype=torch.float32)
    later = x.clone()
    later[:, 7:] += 1.0
    assert_close(made(later)[:, :7], made(x)[:, :7], rtol=1e-5, atol=1e-6)
    assert not torch.allclose(made(later)[:, 7:], made(x)[:, 7:])
    made(x).square().sum().backward()
    assert all(weight.grad is not None for weight in made.parameters())


def small_study(mixer):
    """Return a study that trains one small model of this mixer."""
    return load_study(
        study_text(
            model={"recipe": "{mixer} >> ff(8)", "d_model": 16},
            task={"name": "mqar", "length": 8, "pairs": 2, "vocab": 8, "dev_examples": 4, "test_examples": 4},
            train={"curriculum": None, "epochs": 1},
            factors={"mixer": [mixer], "seed": [0]},
        )
    )


@runs
def test_a_layer_that_has_only_certain_widths_is_trained(tmp_path):
    study = small_study("fla(layer=Mamba2, head_dim=8, num_heads=4, state_size=8)")
    run_study(study, tmp_path, local=True)
    assert StudyResults(study, Store(tmp_path)).status.counts == {"done": 1}


@runs
@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU needs no interpreter")
def test_a_kernel_that_the_interpreter_cannot_run_is_told(tmp_path):
    study = small_study("fla(layer=GatedDeltaNet, num_heads=2, head_dim=8)")
    with pytest.raises(PluginError, match=r"interpreter cannot run .*GPU"):
        run_study(study, tmp_path, local=True)
