"""The Neural GPU family of the vocabulary: whole models that hold both sequences in one image.

An image s is length × width × maps numbers, the length that of the longer of source and target. In the
equations `∗` is a convolution in two dimensions with zeros around the image, `⊗` a product of numbers,
hardsig(x) = clip(1.2 · sigmoid(x) − 0.1, 0, 1), and U, U′, U″, W, W′, W″ kernels of each layer by itself.
"""

from __future__ import annotations

from dataclasses import replace

from .cost_tree import (
    SOURCE_EMBEDDING,
    TARGET_EMBEDDING,
    ModelPart,
    PartKind,
    compose_repeat,
    compose_series,
    compose_stack,
    total_cost,
)
from .registry import register
from .spec import (
    UNBOUNDED,
    Cost,
    CostContext,
    Parameter,
    Reach,
    Role,
    Settings,
    Spec,
    as_bool,
    as_int,
    as_word,
)

PARAMETERS = (
    Parameter(name="layers", kind="integer", default=2, low=1, high=64, meaning="gated units in one step"),
    Parameter(name="width", kind="integer", default=4, low=1, high=256, meaning="width of the image"),
    Parameter(
        name="maps", kind="integer", default=0, low=0, high=65536, meaning="maps of the image; 0: d_model"
    ),
    Parameter(
        name="kernel", kind="integer", default=3, low=3, high=64, meaning="length and width of a kernel"
    ),
)

TAPE = Parameter(
    name="tape",
    kind="word",
    default="first",
    words=("first", "all"),
    meaning="the columns of the tape that an output is written to, across the image's width",
)

INPUT_NORM = Parameter(
    name="input_norm",
    kind="boolean",
    default=False,
    meaning="whether a map with a bias and a norm over the maps make the first image, its empty places too",
)

FIRST_UNIT = Parameter(
    name="first_unit",
    kind="boolean",
    default=False,
    meaning="whether a gated unit of its own stands before the steps",
)

_SAVED_IMAGES_PER_UNIT = 8
"""What training keeps of one unit beside r ⊗ s, in images: its input, both gates in three steps, tanh."""

_UNIT = (
    "CGRU(s) = u ⊗ s + (1 − u) ⊗ tanh(U ∗ (r ⊗ s) + B); u = hardsig(U′ ∗ s + B′); r = hardsig(U″ ∗ s + B″)"
)

_FULL_REACH = Reach(left=UNBOUNDED, right=UNBOUNDED)
"""The reach of as many steps as there are positions: they carry a number from one end to the other."""


def image_maps(settings: Settings, width: int) -> int:
    """The maps of the image, in a model of that width."""
    return as_int(settings, "maps") or width


def _steps(settings: Settings, context: CostContext) -> ModelPart:
    """A stack of units, applied as often as the image is long; dropout acts on the image before each step."""
    layers, length = as_int(settings, "layers"), context.length
    plane = length * as_int(settings, "width") * image_maps(settings, context.width)
    unit = _unit(settings, context)
    units = replace(
        compose_repeat(f"{layers} ×", unit, layers, (unit,), plane), parameters=layers * unit.parameters
    )
    dropped = ModelPart(label="dropout", parameters=0, flops=0, saved=plane)
    step = (*((dropped,) if context.config.dropout else ()), unit if layers == 1 else units)
    steps = compose_repeat(f"tied {length} ×", compose_series("step", step, plane), length, step, plane)
    return replace(steps, reach=_FULL_REACH)


def _unit(settings: Settings, context: CostContext) -> ModelPart:
    """One unit, applied once to the whole image.

    An even kernel needs its inputs, s and r ⊗ s, padded, and keeps them so.
    """
    width, kernel = as_int(settings, "width"), as_int(settings, "kernel")
    length, channels = context.length, image_maps(settings, context.width)
    weights, before = 3 * kernel**2 * channels**2, (kernel - 1) // 2
    plane, padded = length * width * channels, (length + 1) * (width + 1) * channels
    return ModelPart(
        label=f"gated unit {kernel} × {kernel}",
        kind=PartKind.BLOCK,
        parameters=weights + 3 * channels,
        flops=2 * length * width * weights,
        reach=Reach(left=2 * before, right=2 * (kernel - 1 - before)),
        saved=_SAVED_IMAGES_PER_UNIT * plane + (plane if kernel % 2 else 2 * padded),
    )


def _output_map_parameters(settings: Settings, context: CostContext) -> int:
    """The parameters of the map from the model's width to the tape's maps, where they differ."""
    channels = image_maps(settings, context.width)
    return 0 if channels == context.width else channels * context.width


def _encoder_parts(settings: Settings, context: CostContext) -> tuple[ModelPart, ...]:
    """The map of the embeddings and the unit before the steps, if there are any, and the steps themselves."""
    parts = [*_input_map(settings, context)]
    if as_bool(settings, "first_unit"):
        parts.append(replace(_unit(settings, context), label="first unit"))
    first, *others = (*parts, _steps(settings, context))
    return (replace(first, predecessors=(SOURCE_EMBEDDING,)), *others)


def _input_map(settings: Settings, context: CostContext) -> tuple[ModelPart, ...]:
    """What makes maps of the embeddings, where these are not the image's maps as they are.

    A norm saves its input and two numbers a position. What it makes of an empty place of the image is
    computed once.
    """
    channels, length = image_maps(settings, context.width), context.length
    normed = as_bool(settings, "input_norm")
    weights = channels * context.width
    if not normed and channels == context.width:
        return ()
    return (
        ModelPart(
            label="map to the image",
            kind=PartKind.BLOCK,
            parameters=weights + (3 * channels if normed else 0),
            flops=2 * length * weights,
            saved=length * (channels + 2) if normed else 0,
            saved_once=2 if normed else 0,
            saves_input=True,
        ),
    )


def _neural_gpu_cost(settings: Settings, context: CostContext) -> Cost:
    """What reads the source; generation keeps one column of the image."""
    channels = image_maps(settings, context.width)
    column = ModelPart(label="first column", parameters=0, flops=0, state=channels)
    return total_cost((*_encoder_parts(settings, context), column), channels)


def _markov_neural_gpu_cost(settings: Settings, context: CostContext) -> Cost:
    """As plain; the embedded output before is handed on as it is."""
    channels, reader = image_maps(settings, context.width), _encoder_parts(settings, context)
    column = ModelPart(
        label="first column, output before",
        parameters=0,
        flops=0,
        state=channels,
        predecessors=(TARGET_EMBEDDING, reader[-1].label),
    )
    return total_cost((*reader, column), channels + context.width)


def _extended_neural_gpu_cost(settings: Settings, context: CostContext) -> Cost:
    """A second stack, applied as often, which reads the tape; generation keeps its image."""
    channels, plane = image_maps(settings, context.width), context.length * context.width
    image = ModelPart(label="image", parameters=0, flops=0, state=as_int(settings, "width") * channels)
    encoder = compose_stack(
        "encoder", _encoder_parts(settings, context), plane, predecessors=(SOURCE_EMBEDDING,)
    )
    decoder = compose_stack(
        "decoder", (_steps(settings, context), image), plane, predecessors=("tape", "encoder")
    )
    return total_cost((encoder, _tape(settings, context), decoder), channels)


def _tape(settings: Settings, context: CostContext) -> ModelPart:
    """What an output on the tape adds to the three convolutions of each unit, computed once.

    An output moves as many columns of the image as its kernel reaches. The last one is not written. Saved is
    what enters the map to the image and what leaves it, or without one what enters each unit.
    Generation keeps what the tape adds.
    """
    entry, channels = _output_map_parameters(settings, context), image_maps(settings, context.width)
    layers, width, kernel = (as_int(settings, name) for name in ("layers", "width", "kernel"))
    written, before = context.length - 1, (kernel - 1) // 2
    columns = width if as_word(settings, "tape") == "all" else min(width, before + 1)
    spread = 3 * layers * kernel * columns * channels**2
    return ModelPart(
        label="tape",
        kind=PartKind.BLOCK,
        parameters=3 * layers * (kernel * channels) ** 2 + entry,
        flops=2 * written * (spread + entry),
        reach=Reach(left=before, right=0),
        state=3 * layers * width * channels,
        saved=written * (context.width + channels if entry else layers * channels),
        saved_once=spread,
        predecessors=(TARGET_EMBEDDING,),
    )


def _reach(_settings: Settings, context: CostContext) -> Reach:
    """As many steps as there are positions carry a number from one end of the image to the other.

    A causal model hides the outputs that are still to come, never the source.
    """
    return Reach(left=UNBOUNDED, right=0 if context.causal else UNBOUNDED)


NEURAL_GPU = register(
    Spec(
        name="neural_gpu",
        role=Role.TRANSDUCER,
        parameters=(*PARAMETERS, INPUT_NORM, FIRST_UNIT),
        summary="Neural GPU, whose outputs are independent of each other",
        equation=f"{_UNIT}; s_n = (CGRU_l ∘ … ∘ CGRU_1)ⁿ(s_0), n the length; o_i from s_n[i, 0]",
        source=(
            "Kaiser and Sutskever 2016; Kaiser and Bengio 2016, section 2; `input_norm` and `first_unit` are "
            "those of their program"
        ),
        cost=_neural_gpu_cost,
        reach=_reach,
        compiled_for_each_length=lambda _settings: True,
        depends_on_target_length=True,
    )
)

MARKOV_NEURAL_GPU = register(
    Spec(
        name="markov_neural_gpu",
        role=Role.TRANSDUCER,
        parameters=(*PARAMETERS, INPUT_NORM, FIRST_UNIT),
        summary="Neural GPU, each of whose outputs depends on the one before",
        equation="o_i from [s_n[i, 0] ; E′ o_{i−1}], s_n that of neural_gpu",
        source="Kaiser and Bengio 2016, section 2.1",
        cost=_markov_neural_gpu_cost,
        reach=_reach,
        compiled_for_each_length=lambda _settings: True,
        depends_on_target_length=True,
    )
)

EXTENDED_NEURAL_GPU = register(
    Spec(
        name="extended_neural_gpu",
        role=Role.TRANSDUCER,
        parameters=(*PARAMETERS, TAPE, INPUT_NORM, FIRST_UNIT),
        summary="Neural GPU with a decoder that reads all outputs so far from a tape",
        equation=(
            "d_0 = s_n, that of neural_gpu; d_{t+1} = CGRU_l(… CGRU_1(d_t, p_t) …, p_t), "
            "CGRU(s, p) = u ⊗ s + (1 − u) ⊗ tanh(U ∗ (r ⊗ s) + W ∗ p + B), "
            "u = hardsig(U′ ∗ s + W′ ∗ p + B′); r = hardsig(U″ ∗ s + W″ ∗ p + B″); "
            "o_t from d_{t+1}[t, 0]; p_{t+1} = p_t but p_{t+1}[t, 0] = E″ o_t"
        ),
        source="Kaiser and Bengio 2016, section 2.2; the order of steps is that of their program",
        cost=_extended_neural_gpu_cost,
        reach=_reach,
        compiled_for_each_length=lambda _settings: True,
        depends_on_target_length=True,
    )
)
