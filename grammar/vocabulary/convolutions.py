"""The convolutional blocks of the vocabulary ("active memory"), which transform a whole sequence.

In the equations `∗` is a convolution with a kernel of k × width × width. `⊙` is a channelwise product, and
hardsig(x) = clip(1.2 · sigmoid(x) − 0.1, 0, 1). In a causal model a kernel covers a token and its k - 1
predecessors. In other models it covers ⌊(k - 1) / 2⌋ tokens to the left and the rest to the right. Generation
keeps the last k - 1 inputs of each kernel, a window that does not grow with the tokens.

`base_conv` and `hyena` convolve each channel separately, causally in every model. A small network computes
an implicit filter's value for each lag, once for each batch; these products are not counted.
"""

from __future__ import annotations

from .feedforward import ACT
from .spec import (
    CostContext,
    Reach,
    Role,
    Settings,
    Spec,
    as_int,
    as_word,
    define,
    integer,
    word,
)
from .vector_states import CHANNELS

KERNEL = integer("k", "kernel width in tokens", (1, 1024))

MAX_TAPS = 64
"""The maximum number of taps of an explicit filter."""

_SOURCE = "Dowdell and Zhang 2019, section 3.1"


def _reach(settings: Settings, context: CostContext) -> Reach:
    """Return the reach of one kernel; an even one that is not causal sees one more on the right."""
    taps = as_int(settings, "k")
    left = taps - 1 if context.causal else (taps - 1) // 2
    return Reach(left=left, right=taps - 1 - left)


def _kernel_inputs(settings: Settings, context: CostContext) -> int:
    return (as_int(settings, "k") - 1) * context.width


def _reach_of_two(settings: Settings, context: CostContext) -> Reach:
    side = _reach(settings, context)
    return Reach(left=2 * side.left, right=2 * side.right)


def _check_taps(settings: Settings) -> str | None:
    if as_word(settings, "filter") == "explicit" and (taps := as_int(settings, "k")) > MAX_TAPS:
        return f"filter=explicit has a weight for each tap: expected k of at most {MAX_TAPS}, got {taps}"
    return None


def _hyena_reach(settings: Settings, _context: CostContext) -> Reach:
    each, short = as_int(settings, "k") - 1, as_int(settings, "short_conv")
    return Reach(left=(as_int(settings, "order") - 1) * each + max(0, short - 1), right=0)


define(
    Spec(
        name="conv",
        role=Role.MIXER,
        parameters=(KERNEL, ACT),
        summary="convolution over the sequence",
        equation="y = act(W ∗ x + b)",
        source=_SOURCE,
        reach=_reach,
        window=_kernel_inputs,
    ),
    Spec(
        name="persistent_conv",
        role=Role.MIXER,
        parameters=(KERNEL, ACT),
        summary="convolution padded with trained vectors, shared by all such convolutions of equal k",
        equation="y = act(W ∗ [p ; x ; p′] + b)",
        source=_SOURCE,
        reach=_reach,
        window=_kernel_inputs,
    ),
    Spec(
        name="highway_conv",
        role=Role.MIXER,
        parameters=(KERNEL,),
        summary="convolution with a gate that mixes its output with its input",
        equation="g = hardsig(W₁ ∗ x + b₁); y = (W₀ ∗ x + b₀) ⊙ g + x ⊙ (1 − g)",
        source=_SOURCE,
        reach=_reach,
        window=_kernel_inputs,
    ),
    Spec(
        name="cgru",
        role=Role.MIXER,
        parameters=(KERNEL,),
        summary="one step of a convolutional gated recurrent unit",
        equation=(
            "u = hardsig(Wᵤ ∗ x + bᵤ); r = hardsig(Wᵣ ∗ x + bᵣ); "
            "y = u ⊙ x + (1 − u) ⊙ tanh(W₀ ∗ (r ⊙ x) + b₀)"
        ),
        source="Dowdell and Zhang 2019, section 2; Kaiser and Sutskever 2016",
        reach=_reach_of_two,
        window=lambda settings, context: 2 * _kernel_inputs(settings, context),
    ),
    Spec(
        name="base_conv",
        role=Role.MIXER,
        parameters=(
            integer("k", "kernel size of each channel's filter", (1, 65536), 3),
            word(
                "filter",
                "whether taps are weights, or outputs of a small network for each lag",
                ("explicit", "implicit"),
            ),
        ),
        summary="depthwise convolution, gated by a linear map of the input",
        equation="y_t = (W x_t + b) ⊙ (Σ_{s<k} h_s ⊙ x_{t−s} + b′); implicit: h as in hyena",
        source="Arora et al. 2023 (Zoology), definition 4.1 and section 4",
        reach=lambda settings, _context: Reach(left=as_int(settings, "k") - 1, right=0),
        window=_kernel_inputs,
        check=_check_taps,
    ),
    Spec(
        name="hyena",
        role=Role.MIXER,
        parameters=(
            CHANNELS,
            integer("order", "number of gates; there is one long convolution less", (2, 8), 2),
            integer("k", "kernel size of each long filter", (1, 65536), 1024),
            integer(
                "short_conv",
                "kernel size of a causal depthwise convolution after the linear map; 0 for none",
                (0, 64),
                3,
            ),
        ),
        summary="long convolutions with implicit filters, alternating with input-dependent gates",
        equation="[g_0, …, g_N−1, z] = conv(W x + b); z ← h_n ∗ (g_n ⊙ z) + D_n ⊙ g_n ⊙ z, n = N−1 … 1; "
        "y = W_o (g_0 ⊙ z); h_n(s) = exp(−δ s / (k−1)) ⊙ W₄ sin(f W₃ sin(f W₂ sin(f W₁ e(s))))",
        source="Poli et al. 2023 (Hyena Hierarchy), definition 3.1, sections 3.1 to 3.3 and their program",
        reach=_hyena_reach,
        window=lambda settings, context: int(_hyena_reach(settings, context).left) * context.width,
    ),
)
