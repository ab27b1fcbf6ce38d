"""Optimisers, and the weights that they move.

`build` makes the optimiser of [train], or changes its settings amid a training; `rules` has those that torch
lacks. `weights` holds a model with its optimiser and average. `parameter_groups` gives weights rates of their
own, `clipped_steps` keeps steps small, `state_size` counts bytes, and `compiled_body` compiles a model's
body.
"""

from .build import build_optimizer
from .weights import WeightAverage

__all__ = ["WeightAverage", "build_optimizer"]
