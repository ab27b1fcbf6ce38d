"""The active memory of the vocabulary: blocks that move a whole sequence by convolutions.

In the equations `∗` is a convolution with a kernel of k × width × width, `⊗` a product of channels, and
hardsig(x) = clip(1.2 · sigmoid(x) − 0.1, 0, 1). In a causal model a kernel covers the k - 1 tokens to the
left and the token itself; otherwise ⌊(k - 1) / 2⌋ tokens to the left and the rest to the right. Generation
keeps the last k - 1 inputs of each kernel, a window that does not grow with the tokens.
"""

from __future__ import annotations

from dataclasses import replace

from .channel import ACT, FROM_OUTPUT
from .vocabulary import Context, Cost, Parameter, Reach, Role, Settings, Spec, register, whole, word

KERNEL = Parameter(name="k", kind="integer", low=1, high=1024, meaning="kernel width in tokens")

_SOURCE = "Dowdell and Zhang 2019, section 3.1"


def window(kernel: int, *, causal: bool) -> Reach:
    """The tokens to the left and right that a kernel covers: causal, or the odd one on the right."""
    left = kernel - 1 if causal else (kernel - 1) // 2
    return Reach(left=left, right=kernel - 1 - left)


def _convolutions(
    maps: int, settings: Settings, context: Context, *, inputs: int = 1, between: int, saves_input: bool
) -> Cost:
    """The cost of convolutions with bias to so many maps; only taps that can touch data are computed.

    Saved are the padded inputs that they are of, and so many sequences of what they are `between`.
    """
    kernel = whole(settings, "k")
    side = window(kernel, causal=context.causal)
    furthest = context.length - 1
    taps = int(min(side.left, furthest) + 1 + min(side.right, furthest))
    weights = context.width**2
    return Cost(
        parameters=maps * (kernel * weights + context.width),
        flops=maps * 2 * context.length * taps * weights,
        window=inputs * (kernel - 1) * context.width,
        saved=context.width * (inputs * (context.length + taps - 1) + between * context.length),
        saves_input=saves_input,
    )


def _one(settings: Settings, context: Context) -> Cost:
    """W; what the activation gives or takes is saved."""
    found = _convolutions(1, settings, context, between=1, saves_input=False)
    return replace(found, saves_output=word(settings, "act") in FROM_OUTPUT)


def _two(settings: Settings, context: Context) -> Cost:
    """W₀ and the gate's W₁; saved are both, and three steps of the gate."""
    return _convolutions(2, settings, context, between=2 + 3, saves_input=True)


def _three(settings: Settings, context: Context) -> Cost:
    """The update gate's Wᵤ, the reset gate's Wᵣ, and W₀; saved are three steps of both gates, and tanh."""
    return _convolutions(3, settings, context, inputs=2, between=2 * 3 + 1, saves_input=True)


def _padded(settings: Settings, context: Context) -> Cost:
    """As a convolution; the padding, k - 1 rows, is the model's.

    Its products are computed, and what they are of is saved, once a batch; the products are not counted.
    """
    kernel = whole(settings, "k")
    side = window(kernel, causal=context.causal)
    rows = [int(rows + min(rows, context.length) - 1) for rows in (side.left, side.right) if rows]
    return replace(
        _one(settings, context),
        shared={f"padding of persistent_conv(k={kernel})": (kernel - 1) * context.width},
        saved_once=context.width * sum(rows),
    )


def _once(settings: Settings, context: Context) -> Reach:
    """The window of one kernel, however many convolutions stand side by side."""
    return window(whole(settings, "k"), causal=context.causal)


def _twice(settings: Settings, context: Context) -> Reach:
    """The reset gate, a convolution, is convolved again."""
    side = _once(settings, context)
    return Reach(left=2 * side.left, right=2 * side.right)


CONV = register(
    Spec(
        name="conv",
        role=Role.MIXER,
        parameters=(KERNEL, ACT),
        summary="convolution over the sequence",
        equation="y = act(W ∗ x + b)",
        source=_SOURCE,
        cost=_one,
        reach=_once,
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
        cost=_padded,
        reach=_once,
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
        cost=_two,
        reach=_once,
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
        cost=_three,
        reach=_twice,
    )
)
