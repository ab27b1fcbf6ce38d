"""Blocks that build a layer of another package, such as `fla` of flash-linear-attention.

The package is imported only when a layer is built.
"""

from __future__ import annotations

from .spec import Parameter, Role, Spec, define, sees_the_past

define(
    Spec(
        name="fla",
        role=Role.MIXER,
        parameters=(
            Parameter(
                name="layer",
                kind="name",
                words=("GatedLinearAttention", "DeltaNet"),
                meaning="a class of fla.layers; further arguments are those of its constructor",
            ),
        ),
        summary="a layer of flash-linear-attention, whose kernels do not count as FLOPs",
        equation="that of the layer",
        source="Yang and Zhang 2024, flash-linear-attention",
        reach=sees_the_past,
        package="flash-linear-attention",
    ),
)
