"""Roles of weights: declared by every block, and used by decay, Muon, clipping and initialisation."""

from types import MappingProxyType

import pytest
import torch
from torch import nn

from activemem import Linear, build
from activemem.blocks.core.initialisation import WeightRole, WeightRoleError, find_weights, initialise
from activemem.engine.optimisers.build import build_optimizer, muon_maps
from activemem.engine.optimisers.weights import clip_gradients_per_map
from activemem.grammar import Role, lookup
from activemem.grammar.vocabulary.spec import REQUIRED, builtin_names
from activemem.studies.catalog.optimisers import OwnOptimizerSettings

SIZES = {"d_model": 8, "vocab": 5}

VARIANTS = [
    "sa(heads=4, head_width=2, pos=t5, kv_heads=2, qk_norm=rms)",
    "sa(heads=2, head_width=4, pos=relative, span=4, adaptive=true)",
    "all_attn(N=3, span=4, heads=2, head_width=3, adaptive=true)",
    "delta(heads=2, head_width=4, gate=true, short_conv=3)",
    "base_conv(k=5, filter=implicit)",
    "seq2seq(lstm, lstm, attention=bahdanau)",
]

DECAYING_NAMES = ("weight", "weight_x", "weight_h", "keys", "vectors", "left", "right", "begin", "candidate")
"""The last parts of weight names with weight decay, if norms have none."""


def recipe_of(name):
    """Return a block with default arguments, and small values for required ones."""
    spec = lookup(name)
    given = {"integer": "3", "recipe": "lstm", "real": "0.5"}
    required = [each for each in spec.parameters if each.default is REQUIRED]
    block = f"{name}({', '.join(f'{each.name}={given[each.kind]}' for each in required)})"
    return f"conv(k=3) >> {block}" if spec.role is Role.POOL else block


def made(recipe, **settings):
    transduces = any(word in recipe for word in ("seq2seq", "neural_gpu"))
    return build(recipe, **SIZES, **({"source_vocab": 5} if transduces else {"causal": True}), **settings)


@pytest.mark.parametrize("recipe", [*map(recipe_of, builtin_names()), *VARIANTS])
def test_each_weight_of_each_block_has_a_role_that_decides_whether_it_decays(recipe):
    model = made(recipe)
    roles = {name: find_weights(model)[weight].role for name, weight in model.named_parameters()}
    assert WeightRole.OTHER not in roles.values()
    optimizer = build_optimizer(
        OwnOptimizerSettings(name="adamw", lr=0.1, weight_decay=0.5, decay_norms=False), model
    )
    with torch.no_grad():
        for weight in model.parameters():
            weight.fill_(1.0)
            weight.grad = torch.zeros_like(weight)
    optimizer.step()
    decayed = {name for name, weight in model.named_parameters() if bool((weight < 1.0).all())}
    assert decayed == {name for name, role in roles.items() if role in ("matrix", "filter", "embedding")}
    for name in decayed:
        assert "norm" not in name
        assert name.rpartition(".")[2] in (*DECAYING_NAMES, "gates", "tape")


@pytest.mark.parametrize("recipe", [*map(recipe_of, builtin_names()), *VARIANTS])
def test_muon_has_the_matrices_of_a_body_and_splits_each_without_remainder(recipe):
    model = made(recipe)
    maps = muon_maps(model)
    assert all(found.role is WeightRole.MATRIX for found in maps.values())
    for weight, found in maps.items():
        parts = found.split_maps(weight)
        assert sum(part.numel() for part in parts) == weight.numel()
    optimizer = build_optimizer(OwnOptimizerSettings(name="muon", lr=0.1), model)
    for weight in model.parameters():
        weight.grad = torch.randn_like(weight)
    optimizer.step()
    assert all(weight.isfinite().all() for weight in model.parameters())


@pytest.mark.parametrize("span", [0, 4])
def test_maps_of_unequal_size_are_drawn_moved_and_clipped_one_by_one(span):
    torch.manual_seed(0)
    model = build(f"sa(heads=8, head_width=8, kv_heads=1, span={span})", d_model=64, vocab=5)
    weight = next(each for name, each in model.named_parameters() if name.endswith("qkv.weight"))
    parts = muon_maps(model)[weight].split_maps(weight.detach())
    assert [len(part) for part in parts] == [64, 8, 8]
    for part in parts:  # Glorot's bound of each map by itself
        bound = (6 / (64 + len(part))) ** 0.5
        assert 0.9 * bound < float(part.abs().max()) <= bound
    weight.grad = torch.ones_like(weight)
    clip_gradients_per_map(model, 0.5)
    for part in muon_maps(model)[weight].split_maps(weight.grad):
        assert float(part.norm()) == pytest.approx(0.5, rel=1e-4)
    for each in model.parameters():
        each.grad = torch.randn_like(each)
    before = weight.detach().clone()
    build_optimizer(OwnOptimizerSettings(name="muon", lr=1.0), model).step()
    for part, old in list(zip(parts, before.split([64, 8, 8]), strict=True))[1:]:
        values = torch.linalg.svdvals((part - old) / (0.2 * 64**0.5))
        assert ((values > 0.5) & (values < 1.5)).all()


class Foreign(nn.Module):
    """A module as a plug-in might define it."""

    def __init__(self):
        super().__init__()
        self.linear, self.conv = nn.Linear(4, 4), nn.Conv1d(4, 4, 3)
        self.by_channel = nn.Conv1d(4, 4, 3, groups=4)
        self.norm, self.rms, self.table = nn.LayerNorm(4), nn.RMSNorm(4), nn.Embedding(3, 4)
        self.lstm = nn.LSTM(4, 4)
        self.a_log = nn.Parameter(torch.zeros(4, 3))


class Declaring(Foreign):
    weight_roles = MappingProxyType({"a_log": "rate"})


def test_torchs_modules_have_sensible_roles_and_the_rest_is_declared():
    found = find_weights(Declaring())
    roles = {f"{type(each.module).__name__}.{each.name}": each.role.value for each in found.values()}
    assert roles == {
        "Linear.weight": "matrix",
        "Linear.bias": "bias",
        "Conv1d.weight": "filter",
        "Conv1d.bias": "bias",
        "LayerNorm.weight": "norm",
        "LayerNorm.bias": "norm",
        "RMSNorm.weight": "norm",
        "Embedding.weight": "embedding",
        "LSTM.weight_ih_l0": "matrix",
        "LSTM.weight_hh_l0": "matrix",
        "LSTM.bias_ih_l0": "bias",
        "LSTM.bias_hh_l0": "bias",
        "Declaring.a_log": "rate",
    }
    undeclared = {each.name: each.role for each in find_weights(Foreign()).values()}
    assert undeclared["a_log"] is WeightRole.OTHER
    assert not WeightRole.OTHER.decays


def test_all_faults_of_declarations_are_reported():
    model = Foreign()
    model.weight_roles = {"a_log": "rates", "b_log": "rate"}
    with pytest.raises(WeightRoleError) as caught:
        find_weights(model)
    assert "got 'rates'; nearest: rate" in str(caught.value)
    assert "got 'b_log'; nearest: a_log" in str(caught.value)


def test_equal_maps_given_as_a_list_are_drawn_as_so_many_maps():
    drawn = []
    for made_as in (Linear(6, 4, bias=False, maps=3), Linear(6, (4, 4, 4), bias=False)):
        initialise(made_as, torch.Generator().manual_seed(1))
        drawn.append(made_as.weight)
    assert torch.equal(*drawn)
