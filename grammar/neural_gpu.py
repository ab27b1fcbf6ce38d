"""The Neural GPU family of the vocabulary: whole models that hold both sequences in one image.

An image s is length × width × maps numbers, the length that of the longer of source and target. In the
equations `∗` is a convolution in two dimensions with zeros around the image, `⊗` a product of numbers,
hardsig(x) = clip(1.2 · sigmoid(x) − 0.1, 0, 1), and U, U′, U″, W, W′, W″ kernels of each layer by itself.
"""

from __future__ import annotations

from dataclasses import replace

from .parts import SOURCE, TARGET, Form, Part, all_of, copies, in_series, stack
from .vocabulary import ALL, Context, Cost, Parameter, Reach, Role, Settings, Spec, register, whole, word

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

_SAVED = 8
"""What training keeps of one unit beside r ⊗ s, in images: its input, both gates in three steps, tanh."""

_UNIT = (
    "CGRU(s) = u ⊗ s + (1 − u) ⊗ tanh(U ∗ (r ⊗ s) + B); u = hardsig(U′ ∗ s + B′); r = hardsig(U″ ∗ s + B″)"
)

_EVERYWHERE = Reach(left=ALL, right=ALL)
"""The reach of as many steps as there are positions: they carry a number from one end to the other."""


def maps_of(settings: Settings, width: int) -> int:
    """The maps of the image, in a model of that width."""
    return whole(settings, "maps") or width


def _steps(settings: Settings, context: Context) -> Part:
    """A stack of units, applied as often as the image is long; dropout acts on the image before each step."""
    layers, length = whole(settings, "layers"), context.length
    plane = length * whole(settings, "width") * maps_of(settings, context.width)
    unit = _unit(settings, context)
    units = replace(copies(f"{layers} ×", unit, layers, (unit,), plane), parameters=layers * unit.parameters)
    dropped = Part(label="dropout", parameters=0, flops=0, saved=plane)
    step = (*((dropped,) if context.dropout else ()), unit if layers == 1 else units)
    steps = copies(f"tied {length} ×", in_series("step", step, plane), length, step, plane)
    return replace(steps, reach=_EVERYWHERE)


def _unit(settings: Settings, context: Context) -> Part:
    """One unit, applied once to the whole image.

    An even kernel needs its inputs, s and r ⊗ s, padded, and keeps them so.
    """
    width, kernel = whole(settings, "width"), whole(settings, "kernel")
    length, channels = context.length, maps_of(settings, context.width)
    weights, before = 3 * kernel**2 * channels**2, (kernel - 1) // 2
    plane, padded = length * width * channels, (length + 1) * (width + 1) * channels
    return Part(
        label=f"gated unit {kernel} × {kernel}",
        form=Form.BLOCK,
        parameters=weights + 3 * channels,
        flops=2 * length * width * weights,
        reach=Reach(left=2 * before, right=2 * (kernel - 1 - before)),
        saved=_SAVED * plane + (plane if kernel % 2 else 2 * padded),
    )


def _entry(settings: Settings, context: Context) -> int:
    """The parameters of the map from the model's width to the image's maps, where they differ."""
    channels = maps_of(settings, context.width)
    return 0 if channels == context.width else channels * context.width


def _reader(settings: Settings, context: Context) -> tuple[Part, ...]:
    """The map of the embeddings, if there is one, and the steps that read the source."""
    steps, entry = _steps(settings, context), _entry(settings, context)
    if not entry:
        return (replace(steps, follows=(SOURCE,)),)
    made = Part(
        label="map to the image",
        form=Form.BLOCK,
        parameters=entry,
        flops=2 * context.length * entry,
        saves_input=True,
        follows=(SOURCE,),
    )
    return (made, steps)


def _plain(settings: Settings, context: Context) -> Cost:
    """What reads the source; generation keeps one column of the image."""
    channels = maps_of(settings, context.width)
    column = Part(label="first column", parameters=0, flops=0, state=channels)
    return all_of((*_reader(settings, context), column), channels)


def _markov(settings: Settings, context: Context) -> Cost:
    """As plain; the embedded output before is handed on as it is."""
    channels, reader = maps_of(settings, context.width), _reader(settings, context)
    column = Part(
        label="first column, output before",
        parameters=0,
        flops=0,
        state=channels,
        follows=(TARGET, reader[-1].label),
    )
    return all_of((*reader, column), channels + context.width)


def _extended(settings: Settings, context: Context) -> Cost:
    """A second stack, applied as often, which reads the tape; generation keeps its image."""
    channels, plane = maps_of(settings, context.width), context.length * context.width
    image = Part(label="image", parameters=0, flops=0, state=whole(settings, "width") * channels)
    encoder = stack("encoder", _reader(settings, context), plane, follows=(SOURCE,))
    decoder = stack("decoder", (_steps(settings, context), image), plane, follows=("tape", "encoder"))
    return all_of((encoder, _tape(settings, context), decoder), channels)


def _tape(settings: Settings, context: Context) -> Part:
    """What an output on the tape adds to the three convolutions of each unit, computed once.

    An output moves as many columns of the image as its kernel reaches. The last one is not written.
    Generation keeps what the tape adds.
    """
    entry, channels = _entry(settings, context), maps_of(settings, context.width)
    layers, width, kernel = (whole(settings, name) for name in ("layers", "width", "kernel"))
    written, before = context.length - 1, (kernel - 1) // 2
    columns = width if word(settings, "tape") == "all" else min(width, before + 1)
    spread = 3 * layers * kernel * columns * channels**2
    return Part(
        label="tape",
        form=Form.BLOCK,
        parameters=3 * layers * (kernel * channels) ** 2 + entry,
        flops=2 * written * (spread + entry),
        reach=Reach(left=before, right=0),
        state=3 * layers * width * channels,
        saved=(entry > 0) * written * channels,
        saved_once=spread,
        follows=(TARGET,),
    )


def _reach(_settings: Settings, context: Context) -> Reach:
    """As many steps as there are positions carry a number from one end of the image to the other.

    A causal model hides the outputs that are still to come, never the source.
    """
    return Reach(left=ALL, right=0 if context.causal else ALL)


NEURAL_GPU = register(
    Spec(
        name="neural_gpu",
        role=Role.TRANSDUCER,
        parameters=PARAMETERS,
        summary="Neural GPU, whose outputs are independent of each other",
        equation=f"{_UNIT}; s_n = (CGRU_l ∘ … ∘ CGRU_1)ⁿ(s_0), n the length; o_i from s_n[i, 0]",
        source="Kaiser and Sutskever 2016; Kaiser and Bengio 2016, section 2",
        cost=_plain,
        reach=_reach,
    )
)

MARKOV_NEURAL_GPU = register(
    Spec(
        name="markov_neural_gpu",
        role=Role.TRANSDUCER,
        parameters=PARAMETERS,
        summary="Neural GPU, each of whose outputs depends on the one before",
        equation="o_i from [s_n[i, 0] ; E′ o_{i−1}], s_n that of neural_gpu",
        source="Kaiser and Bengio 2016, section 2.1",
        cost=_markov,
        reach=_reach,
    )
)

EXTENDED_NEURAL_GPU = register(
    Spec(
        name="extended_neural_gpu",
        role=Role.TRANSDUCER,
        parameters=(*PARAMETERS, TAPE),
        summary="Neural GPU with a decoder that reads all outputs so far from a tape",
        equation=(
            "d_0 = s_n, that of neural_gpu; d_{t+1} = CGRU_l(… CGRU_1(d_t, p_t) …, p_t), "
            "CGRU(s, p) = u ⊗ s + (1 − u) ⊗ tanh(U ∗ (r ⊗ s) + W ∗ p + B), "
            "u = hardsig(U′ ∗ s + W′ ∗ p + B′); r = hardsig(U″ ∗ s + W″ ∗ p + B″); "
            "o_t from d_{t+1}[t, 0]; p_{t+1} = p_t but p_{t+1}[t, 0] = E″ o_t"
        ),
        source="Kaiser and Bengio 2016, section 2.2; the order of steps is that of their program",
        cost=_extended,
        reach=_reach,
    )
)
