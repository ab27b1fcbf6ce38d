"""Convolutions of each channel by itself, gated by maps of the input, with filters as long as a sequence.

A filter that is implicit has a value for each lag from a small network of the lag. It is computed once a
batch; its products are not counted. All are causal in every model, and a stream computes what lies within
reach anew.
"""

from __future__ import annotations

from .matrix_states.recurrent_heads import chunk_shape
from .registry import register
from .spec import Cost, CostContext, Parameter, Reach, Role, Settings, Spec, as_int, as_word
from .vector_states.recurrent_channels import CHANNELS

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


def _convolution_cost(channels: int, length: int, taps: int, filters: int = 1) -> Cost:
    """So many implicit filters one after the other, each by strips of the matrix that has it in every row.

    Saved are the inputs of each, and once a batch its strip; of the network what each layer is of and gives,
    and the window over lags.
    """
    lags = min(taps, length)
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
    )


def _base_conv(settings: Settings, context: CostContext) -> Cost:
    """A map with a bias, a convolution with one, and their product, of which both are saved."""
    width, length, taps = context.width, context.length, as_int(settings, "k")
    if as_word(settings, "filter") == "implicit":
        found = _convolution_cost(width, length, taps)
    else:
        found = Cost(parameters=taps * width, flops=0, saved=(length + taps - 1) * width)
    return Cost(
        parameters=found.parameters + width**2 + 2 * width,
        flops=found.flops + 2 * length * width**2,
        window=(taps - 1) * width,
        saved=found.saved + 2 * length * width,
        saved_once=found.saved_once,
    )


def _check_taps(settings: Settings) -> str | None:
    """What is wrong with the taps of a filter, or None."""
    taps = as_int(settings, "k")
    if as_word(settings, "filter") == "explicit" and taps > MAX_TAPS:
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
    )
)


def _hyena(settings: Settings, context: CostContext) -> Cost:
    """Maps with biases, a short convolution of what they give, and long ones with gates between them.

    Saved are, beside what the convolutions keep, the maps, what each long one gives, and the last product.
    """
    channels, order, length = as_int(settings, "channels"), as_int(settings, "order"), context.length
    short, taps, maps = as_int(settings, "short_conv"), as_int(settings, "k"), as_int(settings, "order") + 1
    found = _convolution_cost(channels, length, taps, order - 1)
    mapped = context.width * channels * (maps + 1)
    return Cost(
        parameters=mapped + (1 + short) * maps * channels + found.parameters,
        flops=2 * length * mapped + found.flops,
        window=int(_hyena_reach(settings, context).left) * context.width,
        saved=found.saved
        + length * channels * (maps + order)
        + (length + short - 1) * maps * channels * (short > 0),
        saved_once=found.saved_once,
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
    )
)
