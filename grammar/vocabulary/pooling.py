"""The pools of the vocabulary: blocks that reduce a whole sequence to one vector.

A pool has no normalisation or residual sum around it, because its output is not a position of its input.
After it the model continues with the vector as a sequence of one.
"""

from __future__ import annotations

from .spec import Role, Spec, define, sees_the_past

_SOURCE = "Raffel and Ellis 2016, section 1.3"

define(
    Spec(
        name="attention_pool",
        role=Role.POOL,
        summary="mean of all positions, weighted by learned scores",
        equation="e_t = tanh(w · x_t + b); α = softmax(e); y = Σ_t α_t x_t",
        source=_SOURCE,
        reach=sees_the_past,
        window=lambda _settings, context: context.width + 1,
    ),
    Spec(
        name="mean_pool",
        role=Role.POOL,
        summary="plain mean of all positions",
        equation="y = Σ_t x_t / T",
        source=_SOURCE,
        reach=sees_the_past,
        window=lambda _settings, context: context.width,
    ),
    Spec(
        name="last",
        role=Role.POOL,
        summary="the last position only",
        equation="y = x_T",
        source="Sutskever et al. 2014, section 2",
        reach=sees_the_past,
        window=lambda _settings, context: context.width,
    ),
)
