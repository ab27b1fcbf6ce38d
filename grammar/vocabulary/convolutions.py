"""The active memory of the vocabulary: blocks that move a whole sequence by convolutions.

In the equations `∗` is a convolution with a kernel of k × width × width, `⊗` a product of channels, and
hardsig(x) = clip(1.2 · sigmoid(x) − 0.1, 0, 1). In a causal model a kernel covers the k - 1 tokens to the
left and the token itself; otherwise ⌊(k - 1) / 2⌋ tokens to the left and the rest to the right. Generation
keeps the last k - 1 inputs of each kernel, a window that does not grow with the tokens.
"""

from __future__ import annotations

from dataclasses import replace

from .feedforward import ACT, DERIVATIVE_FROM_OUTPUT
from .registry import register
from .spec import Cost, CostContext, Parameter, Reach, Role, Settings, Spec, as_int, as_word

KERNEL = Parameter(name="k", kind="integer", low=1, high=1024, meaning="kernel width in tokens")

_SOURCE = "Dowdell and Zhang 2019, section 3.1"


def kernel_reach(kernel: int, *, causal: bool) -> Reach:
    """The tokens to the left and right that a kernel covers: causal, or the odd one on the right."""
    left = kernel - 1 if causal else (kernel - 1) // 2
    return Reach(left=left, right=kernel - 1 - left)


def _convolution_cost(
    kernels: int,
    settings: Settings,
    context: CostContext,
    *,
    inputs: int = 1,
    intermediates: int,
    saves_input: bool,
) -> Cost:
    """The cost of `kernels` convolutions with bias; only taps that can touch data are computed.

    Saved are their padded `inputs`, and as many sequences as there are `intermediates`.
    """
    kernel = as_int(settings, "k")
    side = kernel_reach(kernel, causal=context.causal)
    furthest = context.length - 1
    taps = int(min(side.left, furthest) + 1 + min(side.right, furthest))
    weights = context.width**2
    return Cost(
        parameters=kernels * (kernel * weights + context.width),
        flops=kernels * 2 * context.length * taps * weights,
        window=inputs * (kernel - 1) * context.width,
        saved=context.width * (inputs * (context.length + taps - 1) + intermediates * context.length),
        saves_input=saves_input,
    )


def _conv_cost(settings: Settings, context: CostContext) -> Cost:
    """W; what the activation gives or takes is saved."""
    found = _convolution_cost(1, settings, context, intermediates=1, saves_input=False)
    return replace(found, saves_output=as_word(settings, "act") in DERIVATIVE_FROM_OUTPUT)


def _highway_conv_cost(settings: Settings, context: CostContext) -> Cost:
    """W₀ and the gate's W₁; saved are both, and three steps of the gate."""
    return _convolution_cost(2, settings, context, intermediates=2 + 3, saves_input=True)


def _cgru_cost(settings: Settings, context: CostContext) -> Cost:
    """The update gate's Wᵤ, the reset gate's Wᵣ, and W₀; saved are three steps of both gates, and tanh."""
    return _convolution_cost(3, settings, context, inputs=2, intermediates=2 * 3 + 1, saves_input=True)


def _persistent_conv_cost(settings: Settings, context: CostContext) -> Cost:
    """As a convolution; the padding, k - 1 rows, is the model's.

    Its products are computed, and what they are of is saved, once a batch; the products are not counted.
    """
    kernel = as_int(settings, "k")
    side = kernel_reach(kernel, causal=context.causal)
    rows = [int(rows + min(rows, context.length) - 1) for rows in (side.left, side.right) if rows]
    return replace(
        _conv_cost(settings, context),
        shared={f"padding of persistent_conv(k={kernel})": (kernel - 1) * context.width},
        saved_once=context.width * sum(rows),
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
        source=_SOURCE + "; Kaiser and Sutskever 2016",
        cost=_cgru_cost,
        reach=_cgru_reach,
    )
)
