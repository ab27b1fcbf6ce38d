"""The Neural GPU family of the vocabulary: whole models that hold both sequences in one image.

An image s is length × width × maps numbers, with the length of the longer of source and target. In the
equations `∗` is a convolution in two dimensions with zeros around the image, `⊗` a product of numbers,
hardsig(x) = clip(1.2 · sigmoid(x) − 0.1, 0, 1), and each layer has kernels U, U′, U″, W, W′, W″ of its own.
"""

from __future__ import annotations

from .registry import define
from .spec import UNBOUNDED, CostContext, Parameter, Reach, Role, Settings, Spec, as_int

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

_UNIT = (
    "CGRU(s) = u ⊗ s + (1 − u) ⊗ tanh(U ∗ (r ⊗ s) + B); u = hardsig(U′ ∗ s + B′); r = hardsig(U″ ∗ s + B″)"
)


def image_maps(settings: Settings, width: int) -> int:
    """Return the number of maps of the image in a model of that width."""
    return as_int(settings, "maps") or width


def _column(settings: Settings, context: CostContext) -> int:
    """Return the numbers of one column of the image."""
    return image_maps(settings, context.width)


def _image_and_tape(settings: Settings, context: CostContext) -> int:
    """Return the numbers at each position of the image, and of what the tape adds to each unit's gates."""
    layers, width = as_int(settings, "layers"), as_int(settings, "width")
    return (1 + 3 * layers) * width * image_maps(settings, context.width)


def _reach(_settings: Settings, context: CostContext) -> Reach:
    """Return a reach over everything: there are as many steps as positions.

    A causal model hides later outputs, never the source.
    """
    return Reach(left=UNBOUNDED, right=0 if context.causal else UNBOUNDED)


NEURAL_GPU = define(
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
        state=_column,
        reach=_reach,
        compiled_for_each_length=lambda _settings: True,
        depends_on_target_length=True,
    )
)

MARKOV_NEURAL_GPU = define(
    Spec(
        name="markov_neural_gpu",
        role=Role.TRANSDUCER,
        parameters=(*PARAMETERS, INPUT_NORM, FIRST_UNIT),
        summary="Neural GPU, each of whose outputs depends on the one before",
        equation="o_i from [s_n[i, 0] ; E′ o_{i−1}], s_n that of neural_gpu",
        source="Kaiser and Bengio 2016, section 2.1",
        state=_column,
        reach=_reach,
        compiled_for_each_length=lambda _settings: True,
        depends_on_target_length=True,
    )
)

EXTENDED_NEURAL_GPU = define(
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
        state=_image_and_tape,
        reach=_reach,
        compiled_for_each_length=lambda _settings: True,
        depends_on_target_length=True,
    )
)
