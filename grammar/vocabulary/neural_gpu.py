"""The Neural GPU blocks: whole models that compute the target from an image of the source.

An image is a two-dimensional state s with length × width × maps numbers. Its length is the longer of source
and target. In the equations `∗` is a two-dimensional convolution with zeros around the image. `⊙` is an
elementwise product, and hardsig(x) = clip(1.2 · sigmoid(x) − 0.1, 0, 1). Each layer has its own kernels U,
U′, U″, W, W′, W″.
"""

from __future__ import annotations

from collections.abc import Callable

from .spec import (
    CostContext,
    Parameter,
    Role,
    Settings,
    Spec,
    as_int,
    boolean,
    define,
    integer,
    sees_everything,
    word,
)

_TAPE = word(
    "tape",
    "columns across the image's width in which the tape holds each output",
    ("first", "all"),
)

_UNIT = (
    "CGRU(s) = u ⊙ s + (1 − u) ⊙ tanh(U ∗ (r ⊙ s) + B); u = hardsig(U′ ∗ s + B′); r = hardsig(U″ ∗ s + B″)"
)


def image_maps(settings: Settings, width: int) -> int:
    """Return the number of channels of a Neural GPU's image: `maps` or, if that is 0, the model's width."""
    return as_int(settings, "maps") or width


def _column(settings: Settings, context: CostContext) -> int:
    return image_maps(settings, context.width)


def _image_and_tape(settings: Settings, context: CostContext) -> int:
    """Return the numbers of an image, and the terms that the tape adds to three convolutions a layer."""
    layers, width = as_int(settings, "layers"), as_int(settings, "width")
    return (1 + 3 * layers) * width * image_maps(settings, context.width)


def _neural_gpu(
    name: str,
    summary: str,
    equation: str,
    source: str,
    *own: Parameter,
    state: Callable[[Settings, CostContext], int] = _column,
) -> Spec:
    """Return the specification of a Neural GPU, whose reach is unbounded: it takes a step for each position.

    A causal model hides later outputs, never the source.
    """
    return Spec(
        name=name,
        role=Role.TRANSDUCER,
        parameters=(
            integer("layers", "number of gated units per step", (1, 64), 2),
            integer("width", "width of the image", (1, 256), 4),
            integer("maps", "channels of the image; 0: d_model", (0, 65536), 0),
            integer("kernel", "kernel size in both directions", (3, 64), 3),
            *own,
            boolean(
                "input_norm",
                "whether a linear map with bias and a norm over channels create the initial image, including "
                "empty cells",
            ),
            boolean("first_unit", "whether a separate gated unit precedes the steps"),
        ),
        summary=summary,
        equation=equation,
        source=source,
        state=state,
        reach=sees_everything,
        depends_on_target_length=True,
    )


define(
    _neural_gpu(
        "neural_gpu",
        "Neural GPU with independent outputs",
        f"{_UNIT}; s_n = (CGRU_l ∘ … ∘ CGRU_1)ⁿ(s_0), n the length; o_i from s_n[i, 0]",
        "Kaiser and Sutskever 2016; Kaiser and Bengio 2016, section 2; `input_norm` and `first_unit` are "
        "those of their program",
    ),
    _neural_gpu(
        "markov_neural_gpu",
        "Neural GPU in which each output depends on the previous one",
        "o_i from [s_n[i, 0] ; E′ o_{i−1}], s_n as in neural_gpu",
        "Kaiser and Bengio 2016, section 2.1",
    ),
    _neural_gpu(
        "extended_neural_gpu",
        "Neural GPU with a decoder that reads all previous outputs from a tape",
        "d_0 = s_n as in neural_gpu; d_{t+1} = CGRU_l(… CGRU_1(d_t, p_t) …, p_t), "
        "CGRU(s, p) = u ⊙ s + (1 − u) ⊙ tanh(U ∗ (r ⊙ s) + W ∗ p + B), "
        "u = hardsig(U′ ∗ s + W′ ∗ p + B′); r = hardsig(U″ ∗ s + W″ ∗ p + B″); "
        "o_t from d_{t+1}[t, 0]; p_{t+1} = p_t but p_{t+1}[t, 0] = E″ o_t",
        "Kaiser and Bengio 2016, section 2.2; the order of steps is that of their program",
        _TAPE,
        state=_image_and_tape,
    ),
)
