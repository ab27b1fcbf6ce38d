"""The active memory of the vocabulary: blocks that move a whole sequence by convolutions.

In the equations `∗` is a convolution with a kernel of k × width × width, `⊗` a product of channels, and
hardsig(x) = clip(1.2 · sigmoid(x) − 0.1, 0, 1). In a causal model a kernel covers the k - 1 tokens to the
left and the token itself; otherwise ⌊(k - 1) / 2⌋ tokens to the left and the rest to the right. Generation
keeps the last k - 1 inputs of each kernel, a window that does not grow with the tokens.

`base_conv` and `hyena` convolve each channel by itself, causally in every model. An implicit filter has
a value for each lag from a small network, computed once a batch; its products are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .feedforward import ACT, DERIVATIVE_FROM_OUTPUT
from .matrix_states.recurrent_heads import chunk_shape
from .registry import register
from .spec import Cost, CostContext, Parameter, Reach, Role, Settings, Spec, Working, as_int, as_word
from .vector_states.recurrent_channels import CHANNELS

KERNEL = Parameter(name="k", kind="integer", low=1, high=1024, meaning="kernel width in tokens")

_SOURCE = "Dowdell and Zhang 2019, section 3.1"


def kernel_reach(kernel: int, *, causal: bool) -> Reach:
    """The tokens to the left and right that a kernel covers: causal, or the odd one on the right."""
    left = kernel - 1 if causal else (kernel - 1) // 2
    return Reach(left=left, right=kernel - 1 - left)


GAIN = 1.25
"""Products by frequencies must be so many times fewer: they are smaller, and more of them move memory."""

GAIN_BESIDE_WIDER_VECTORS = 2.0
"""The same where torch's convolutions have vectors that its products lack."""

LEAST_PRODUCTS = 2**19
"""Of fewer products the time goes into the calls."""

MOST_NUMBERS, MOST_FACTORS = 2**23, 2**19
"""No more transformed numbers of a model are made, which would be read from far, or kept in transforms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """Weights that slide along sequences with zeros at their sides, by sizes, of each of several models."""

    sequences: int
    length: int
    left: int
    right: int
    taps: int
    width: int
    outputs: int
    models: int = 1

    @property
    def products(self) -> int:
        """How many products of matrices the frequencies of its circle take: three each, at the ends one."""
        around = self.length + max(self.left, self.right)
        return 3 * ((around - 1) // 2) + (1 if around % 2 else 2)

    @property
    def transformed(self) -> int:
        """The numbers of a model's inputs, weights and outputs by frequencies."""
        return self.products * (self.sequences * (self.width + self.outputs) + self.outputs * self.width)

    def is_faster_by_frequencies(self, gain: float) -> bool:
        """Whether these take so many times fewer products than positions do, and memory that is near."""
        positions = self.left + self.length + self.right - self.taps + 1
        slid = self.sequences * positions * self.taps * self.width * self.outputs
        each = self.sequences * (self.width * (self.length + self.outputs) + self.outputs * positions)
        each += 2 * self.outputs * self.width * self.taps  # transforms of weights cost twice what they count
        return (
            slid >= max(LEAST_PRODUCTS / self.models, gain * self.products * each)
            and self.transformed <= MOST_NUMBERS
            and self.products * (self.length + self.taps + positions) <= MOST_FACTORS
        )


def _convolution_cost(
    maps: tuple[int, ...], settings: Settings, context: CostContext, *, intermediates: int, saves_input: bool
) -> Cost:
    """The cost of convolutions with bias, `maps` of each input; only taps that can touch data are computed.

    Saved are padded inputs, the first the block's, and as many sequences as there are `intermediates`; by
    frequencies inputs as they are, and transforms of these and of weights.
    """
    kernel, width, length = as_int(settings, "k"), context.width, context.length
    side = kernel_reach(kernel, causal=context.causal)
    left, right = (int(min(each, length - 1)) for each in (side.left, side.right))
    found = Cost(
        parameters=sum(maps) * (kernel * width**2 + width),
        flops=sum(maps) * 2 * length * (left + 1 + right) * width**2,
        window=len(maps) * (kernel - 1) * width,
        saved=width * intermediates * length,
        saves_input=saves_input,
    )
    padded = width * (length + left + right)
    if context.causal or (cpu := context.cpu) is None:
        return replace(found, saved=found.saved + len(maps) * padded)
    for place, count in enumerate(maps):
        sizes = Correlation(
            sequences=cpu.sequences,
            length=length,
            left=left,
            right=right,
            taps=left + 1 + right,
            width=width,
            outputs=count * width,
        )
        if sizes.is_faster_by_frequencies(cpu.gain):
            found = _with_transforms(found, sizes, of_block=not place)
        else:
            found = replace(found, saved=found.saved + padded)
    return found


def _with_transforms(found: Cost, sizes: Correlation, *, of_block: bool) -> Cost:
    """With what a convolution by frequencies keeps of its inputs, and of gradients holds for a while."""
    products, of_inputs, weights = sizes.products, sizes.length * sizes.width, sizes.outputs * sizes.width
    last = max(products * sizes.sequences * sizes.width, sizes.taps * weights)
    held = Working(numbers=of_inputs + products * sizes.outputs, once=products * weights + last)
    return replace(
        found,
        saved=found.saved + products * sizes.width + (0 if of_block else of_inputs),
        saved_once=found.saved_once + products * weights,
        saves_input=found.saves_input or of_block,
        working=max(found.working, held, key=lambda each: each.bytes(sizes.sequences)),
    )


def _conv_cost(settings: Settings, context: CostContext) -> Cost:
    """W; what the activation gives or takes is saved."""
    found = _convolution_cost((1,), settings, context, intermediates=1, saves_input=False)
    return replace(found, saves_output=as_word(settings, "act") in DERIVATIVE_FROM_OUTPUT)


def _highway_conv_cost(settings: Settings, context: CostContext) -> Cost:
    """W₀ and the gate's W₁; saved are both, and three steps of the gate."""
    return _convolution_cost((2,), settings, context, intermediates=2 + 3, saves_input=True)


def _cgru_cost(settings: Settings, context: CostContext) -> Cost:
    """The update gate's Wᵤ, the reset gate's Wᵣ, and W₀; saved are three steps of both gates, and tanh."""
    return _convolution_cost((2, 1), settings, context, intermediates=2 * 3 + 1, saves_input=True)


def _persistent_conv_cost(settings: Settings, context: CostContext) -> Cost:
    """As a convolution; the padding, k - 1 rows, is the model's.

    Its products are computed, and what they are of is saved, once a batch; the products are not counted.
    """
    kernel = as_int(settings, "k")
    side = kernel_reach(kernel, causal=context.causal)
    rows = [int(rows + min(rows, context.length) - 1) for rows in (side.left, side.right) if rows]
    found = _conv_cost(settings, context)
    return replace(
        found,
        shared={f"padding of persistent_conv(k={kernel})": (kernel - 1) * context.width},
        saved_once=found.saved_once + context.width * sum(rows),
    )


def _conv_reach(settings: Settings, context: CostContext) -> Reach:
    """The window of one kernel, however many convolutions stand side by side."""
    return kernel_reach(as_int(settings, "k"), causal=context.causal)


def _cgru_reach(settings: Settings, context: CostContext) -> Reach:
    """The reset gate, a convolution, is convolved again."""
    side = _conv_reach(settings, context)
    return Reach(left=2 * side.left, right=2 * side.right)


CONV = register(
    Spec(
        name="conv",
        role=Role.MIXER,
        parameters=(KERNEL, ACT),
        summary="convolution over the sequence",
        equation="y = act(W ∗ x + b)",
        source=_SOURCE,
        cost=_conv_cost,
        reach=_conv_reach,
    )
)

PERSISTENT_CONV = register(
    Spec(
        name="persistent_conv",
        role=Role.MIXER,
        parameters=(KERNEL, ACT),
        summary="convolution padded with trained vectors, which all of the model's with one k share",
        equation="y = act(W ∗ [p ; x ; p′] + b)",
        source=_SOURCE,
        cost=_persistent_conv_cost,
        reach=_conv_reach,
    )
)

HIGHWAY_CONV = register(
    Spec(
        name="highway_conv",
        role=Role.MIXER,
        parameters=(KERNEL,),
        summary="convolution with a gate between it and its input",
        equation="g = hardsig(W₁ ∗ x + b₁); y = (W₀ ∗ x + b₀) ⊗ g + x ⊗ (1 − g)",
        source=_SOURCE,
        cost=_highway_conv_cost,
        reach=_conv_reach,
    )
)

CGRU = register(
    Spec(
        name="cgru",
        role=Role.MIXER,
        parameters=(KERNEL,),
        summary="convolutional gated recurrent unit, one step of it",
        equation=(
            "u = hardsig(Wᵤ ∗ x + bᵤ); r = hardsig(Wᵣ ∗ x + bᵣ); "
            "y = u ⊗ x + (1 − u) ⊗ tanh(W₀ ∗ (r ⊗ x) + b₀)"
        ),
        source="Dowdell and Zhang 2019, section 2; Kaiser and Sutskever 2016",
        cost=_cgru_cost,
        reach=_cgru_reach,
    )
)

LAG_FEATURES, FILTER_WIDTH, FILTER_LAYERS = 33, 64, 3
"""What the network of a filter knows of a lag, how wide it is, and how many layers of sines it has."""

MAX_STRIP_LENGTH = 64
"""A longer sequence is convolved in pieces of about one size, none longer than this."""

MAX_TAPS = 64
"""An explicit filter has no more."""


def strip_shape(length: int, lags: int) -> tuple[int, int, int]:
    """In how many pieces a sequence is convolved, how long each is, and how many inputs the last reads."""
    count, size = chunk_shape(length, MAX_STRIP_LENGTH)
    return count, size, min(count * size, lags - 1 + size)


def _implicit_cost(context: CostContext, channels: int, taps: int, filters: int = 1) -> Cost:
    """So many implicit filters one after the other, each by strips of the matrix that has it in every row.

    Saved are the inputs of each, and once a batch its strip; of the network what each layer is of and gives,
    and the window over lags. For a while the gradients of a strip are held,
    of the inputs of a filter, and of what the block gives.
    """
    length, lags = context.length, min(taps, context.length)
    count, size, width = strip_shape(length, lags)
    pairs = size * sum(min((place + 1) * size, width) for place in range(count))
    inner, last = FILTER_LAYERS - 1, filters * channels
    weights = FILTER_WIDTH * (LAG_FEATURES + 1 + inner * (FILTER_WIDTH + 1) + 1 + last)
    return Cost(
        parameters=weights + last,
        flops=2 * filters * channels * pairs,
        saved=filters * channels * count * size,
        saved_once=filters * channels * size * width
        + lags * (LAG_FEATURES + 3 * FILTER_LAYERS * FILTER_WIDTH + last),
        working=Working(
            numbers=count * size * channels + length * context.width,
            once=channels * size * _gradient_columns(count, size, width),
        ),
    )


def _gradient_columns(count: int, size: int, width: int) -> int:
    """The columns of a strip's gradients that are held at once, the strip itself being saved.

    Pieces read its last columns. To the sum so far each adds a gradient as wide as the strip, which is made
    of one of the columns that it reads where these are not all. In front of the first piece's the strip goes.
    """
    read = [min((place + 1) * size, width) for place in range(count)]
    if inner := [columns for columns in read[1:] if columns < width]:
        return 2 * width + max(inner)
    return {1: width, 2: width + read[0]}.get(count, 2 * width)


def _base_conv(settings: Settings, context: CostContext) -> Cost:
    """A map with a bias, a convolution with one, and their product, of which both are saved."""
    width, length, taps = context.width, context.length, as_int(settings, "k")
    found = Cost(parameters=taps * width, flops=0)  # the block's input is what it saves
    if as_word(settings, "filter") == "implicit":
        found = _implicit_cost(context, width, taps)
    return Cost(
        parameters=found.parameters + width**2 + 2 * width,
        flops=found.flops + 2 * length * width**2,
        window=(taps - 1) * width,
        saved=found.saved + 2 * length * width,
        saved_once=found.saved_once,
        working=found.working,
    )


def _check_taps(settings: Settings) -> str | None:
    """What is wrong with the taps of a filter, or None."""
    if as_word(settings, "filter") == "explicit" and (taps := as_int(settings, "k")) > MAX_TAPS:
        return f"filter=explicit has a weight for each tap: expected k of at most {MAX_TAPS}, got {taps}"
    return None


BASE_CONV = register(
    Spec(
        name="base_conv",
        role=Role.MIXER,
        parameters=(
            Parameter(
                name="k",
                kind="integer",
                default=3,
                low=1,
                high=65536,
                meaning="taps of the filter of each channel",
            ),
            Parameter(
                name="filter",
                kind="word",
                default="explicit",
                words=("explicit", "implicit"),
                meaning="whether each tap is a weight, or what a small network gives for its lag",
            ),
        ),
        summary="convolution of each channel, gated by a map of the input",
        equation="y_t = (W x_t + b) ⊗ (Σ_{s<k} h_s ⊗ x_{t−s} + b′); implicit: h as of hyena",
        source="Arora et al. 2023 (Zoology), definition 4.1 and section 4",
        cost=_base_conv,
        reach=lambda settings, _context: Reach(left=as_int(settings, "k") - 1, right=0),
        check=_check_taps,
        compiled_for_each_length=lambda settings: as_word(settings, "filter") == "implicit",
    )
)


def _hyena(settings: Settings, context: CostContext) -> Cost:
    """Maps with biases, a short convolution of what they give, and long ones with gates between them.

    Saved are, beside what the convolutions keep, the maps, what each long one gives, and the last product.
    """
    channels, order, length = as_int(settings, "channels"), as_int(settings, "order"), context.length
    short, taps, maps = as_int(settings, "short_conv"), as_int(settings, "k"), as_int(settings, "order") + 1
    found = _implicit_cost(context, channels, taps, order - 1)
    mapped = context.width * channels * (maps + 1)
    return Cost(
        parameters=mapped + (1 + short) * maps * channels + found.parameters,
        flops=2 * length * mapped + found.flops,
        window=int(_hyena_reach(settings, context).left) * context.width,
        saved=found.saved + length * channels * (maps + order) + length * maps * channels * (short > 0),
        saved_once=found.saved_once,
        working=found.working,
    )


def _hyena_reach(settings: Settings, _context: CostContext) -> Reach:
    """The short convolution and each long one reach further."""
    each, short = as_int(settings, "k") - 1, as_int(settings, "short_conv")
    return Reach(left=(as_int(settings, "order") - 1) * each + max(0, short - 1), right=0)


HYENA = register(
    Spec(
        name="hyena",
        role=Role.MIXER,
        parameters=(
            CHANNELS,
            Parameter(
                name="order",
                kind="integer",
                default=2,
                low=2,
                high=8,
                meaning="gates, between which there is one long convolution less",
            ),
            Parameter(
                name="k", kind="integer", default=1024, low=1, high=65536, meaning="taps of each long filter"
            ),
            Parameter(
                name="short_conv",
                kind="integer",
                default=3,
                low=0,
                high=64,
                meaning="taps of a causal convolution of each channel of what is mapped; 0 for none",
            ),
        ),
        summary="long convolutions with implicit filters and gates of the input between them",
        equation="[g_0, …, g_N−1, z] = conv(W x + b); z ← h_n ∗ (g_n ⊗ z) + D_n ⊗ g_n ⊗ z, n = N−1 … 1; "
        "y = W_o (g_0 ⊗ z); h_n(s) = exp(−δ s / (k−1)) ⊗ W₄ sin(f W₃ sin(f W₂ sin(f W₁ e(s))))",
        source="Poli et al. 2023 (Hyena Hierarchy), definition 3.1, sections 3.1 to 3.3 and their program",
        cost=_hyena,
        reach=_hyena_reach,
        compiled_for_each_length=lambda _settings: True,
    )
)
