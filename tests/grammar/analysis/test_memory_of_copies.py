"""The memory of a training step of a recipe with repeats is that of its whole model, to the byte."""

from contextlib import nullcontext

import pytest

from activemem import load_study
from activemem.blocks import costs
from activemem.grammar import Analysis, analyse
from activemem.grammar.analysis import measured_costs
from activemem.studies import shipped_studies
from activemem.studies.planning import step_memory

from ...quick_cases import one_in

SIZES = [
    {"d_model": 64, "length": 20, "vocab": 50, "batch": 4},
    {"d_model": 128, "length": 4, "vocab": 1000, "batch": 1, "norm": "post"},  # mainly gradients
    {"d_model": 32, "length": 12, "vocab": 5, "batch": 8, "norm": "none", "residual": False},
    {
        "d_model": 64,
        "length": 3,
        "vocab": 5,
        "batch": 1,
        "accumulates": True,
        "activation_checkpointing": True,
    },
    {"d_model": 32, "length": 200, "vocab": 11, "batch": 2},  # loops are measured at shorter lengths
]
RECIPES = [
    "5 * (sa >> ff(256))",
    "tied(6 * (sa >> ff(128)))",
    "3 * (4 * conv(k=3) >> sa) >> ff(64)",
    "sa + 5 * ff(32)",
    "5 * (sa(span=8) + conv(k=5)) >> mean_pool",
    "4 * lstm >> 5 * gru",
    "4 * (mamba(channels=32) >> ff(64))",
    "5 * (delta >> glu(64))",
    "ff(4096) >> 5 * sa",
    "9 * ff(16) >> ff(4096)",
    "5 * all_attn(N=64, span=32, adaptive=true)",
    "5 * ttt(heads=2, head_width=16)",
    "seq2seq(5 * (sa >> ff(64)), 4 * (sa >> ff(64)))",
    "100 * ff(8)",
]


def check(analysis: Analysis, batch: int, *, accumulates: bool = False) -> None:
    sizes = {**analysis.sizes, "batch": batch, "accumulates": accumulates}
    whole = measured_costs.measure("step", analysis.root, analysis.config, **sizes)
    kept = sum(count for name, count in whole.items() if name.startswith("kept "))
    memory = analysis.memory(batch, accumulates=accumulates)
    assert memory.activations == kept
    assert memory.step_peak == whole["peak"]


@pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: f"length={sizes['length']}")
@pytest.mark.parametrize("recipe", one_in(2, RECIPES))
def test_a_recipe_with_repeats_keeps_the_memory_of_its_whole_model(recipe, sizes):
    sizes = {"dropout": 0.1, **sizes, **({"source_vocab": 9} if "seq2seq" in recipe else {})}
    batch, accumulates = sizes.pop("batch"), sizes.pop("accumulates", False)
    check(analyse(recipe, **sizes), batch, accumulates=accumulates)


@pytest.mark.heavy
@pytest.mark.parametrize("name", shipped_studies())
def test_a_model_of_a_shipped_study_keeps_the_memory_of_its_whole_model(name):
    study, seen = load_study(name), set()
    for trial in study.examples:
        settings = trial.settings
        recipe, config, train = settings.model.recipe, settings.config, settings.train
        batch, past = -(-train.batch_size // train.accumulate), settings.task.interface.past
        if " * " not in recipe or (recipe, config, batch) in seen:
            continue
        seen.add((recipe, config, batch))
        analysis = analyse(recipe, config, length=step_memory(settings).tokens, past=past)
        check(analysis, batch, accumulates=train.accumulate > 1)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_equal_groups_of_a_mamba_layer_keep_the_memory_of_all_groups(layers, checkpointing, monkeypatch):
    recipe = f"{layers} * (mamba(channels=512, state=16) >> ff(64))"
    sizes = {"d_model": 64, "length": 64, "vocab": 5, "activation_checkpointing": checkpointing}
    once = analyse(recipe, **sizes).memory(31)
    measured_costs.measure.cache_clear()
    monkeypatch.setattr(costs, "_equal_groups_once", lambda _memory: nullcontext())
    monkeypatch.setattr(measured_costs, "remember", lambda _what, _of, measure: measure())
    assert analyse(recipe, **sizes).memory(31) == once
    measured_costs.measure.cache_clear()
