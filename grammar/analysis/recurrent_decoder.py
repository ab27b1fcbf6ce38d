"""What recurrent blocks by themselves cost in `seq2seq`: as encoder, as decoder, and what they attend to."""

from __future__ import annotations

from dataclasses import replace

from ..nodes import BlockNode, Value
from ..vocabulary.cost_tree import SOURCE_EMBEDDING, TARGET_EMBEDDING, ModelPart, PartKind
from ..vocabulary.recurrent import INPUT_MAPS
from ..vocabulary.spec import UNBOUNDED, CostContext, Reach, Settings, as_int, as_word
from .analyse import analyse_block
from .cross_attention import is_recurrent

FED_CONTEXT = "input and context"
"""The map that makes a decoder's input of an embedding and of what was attended to before it."""

_FULL_REACH = Reach(left=UNBOUNDED, right=UNBOUNDED)


def recurrent_layers(block: Value) -> tuple[str, Value]:
    """What a recurrent block is, and how many layers it has."""
    assert isinstance(block, BlockNode)
    return block.name, dict(block.arguments).get("layers", 1)


def recurrent_units(settings: Settings, width: int) -> int:
    """The width of the recurrent blocks of a `seq2seq`, in a model of that width."""
    return as_int(settings, "units") or width


def analyse_recurrent(settings: Settings, name: str, context: CostContext) -> ModelPart:
    """A recurrent block as it is, without a residual stack around it; its input is as wide as the model."""
    part, units = settings[name], recurrent_units(settings, context.width)
    assert isinstance(part, BlockNode)
    found = analyse_block(part, replace(context, config=replace(context.config, d_model=units)))
    more = INPUT_MAPS[part.name] * units * (units - context.width)
    return replace(found, parameters=found.parameters - more, flops=found.flops - 2 * context.length * more)


def recurrent_encoder(settings: Settings, context: CostContext) -> ModelPart:
    """A recurrent block whose last states are taken where each source ends.

    Saved are, for each layer, two places of eight bytes, and the last cell of an lstm that is carried on.
    """
    (name, layers), found = (
        recurrent_layers(settings["encoder"]),
        analyse_recurrent(settings, "encoder", context),
    )
    assert isinstance(layers, int)
    carried = is_recurrent(settings["decoder"]) and name == "lstm"
    cell = recurrent_units(settings, context.width) if carried else 0
    return replace(found, saved=found.saved + layers * (4 + cell))


def feed_context(settings: Settings, context: CostContext) -> ModelPart:
    """The map of [x_t ; c_{t−1}] to the decoder's input, with a bias; generation keeps c."""
    units = recurrent_units(settings, context.width)
    inner = context.width + units
    return ModelPart(
        label=FED_CONTEXT,
        kind=PartKind.BLOCK,
        parameters=inner * context.width + context.width,
        flops=2 * context.length * inner * context.width,
        reach=Reach(left=UNBOUNDED, right=0),
        window=units,
        saved=context.length * inner,
        predecessors=(TARGET_EMBEDDING,),
    )


def attention_to_source(settings: Settings, context: CostContext) -> ModelPart:
    """The attention of a recurrent decoder: keys of what is attended to, scores of pairs, means.

    A layer on each pair has gradients of what it gives and of what it is of.
    """
    kind, length = as_word(settings, "attention"), context.length
    width, attended = recurrent_units(settings, context.width), as_word(settings, "attend")
    inner = width + (as_int(settings, "positions") if attended == "inputs" else 0)
    keys, pairs = 2 * length * inner * width, 2 * length**2 * width
    weights = context.saved_weights(length**2)
    part = ModelPart(
        label=f"{kind} attention" + (" to inputs" if attended == "inputs" else ""),
        kind=PartKind.BLOCK,
        parameters=inner * width,
        flops=keys + 2 * pairs,
        reach=_FULL_REACH,
        state=2 * width,
        saved=weights + length * (3 * width + inner),
        predecessors=("decoder", SOURCE_EMBEDDING if attended == "inputs" else "encoder"),
    )
    if kind == "luong":
        return part
    return replace(
        part,
        parameters=part.parameters + width**2 + width,
        flops=part.flops + 2 * length * width**2,
        saved=weights + length**2 * width + length * (2 * width + inner),
    )
