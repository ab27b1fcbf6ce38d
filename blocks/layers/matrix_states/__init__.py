"""Recurrent blocks whose state is a matrix for each head.

Training computes chunks of positions by products, and generation computes single positions.

- `recurrent_heads` has the parts around a recurrence.
- `linear_recurrences` has recurrences whose state is kept or decays, and mLSTM's exponential gates.
  `chunked_recurrence` computes them.
- `delta_rule` has recurrences that correct their state.
- `mamba3` has writes at two positions, and rotated keys.
- `inner_model` has a state that is itself a model that learns.
"""

from . import (
    delta_rule,
    inner_model,
    linear_recurrences,
    mamba3,
)  # each registers its blocks

__all__ = ["delta_rule", "inner_model", "linear_recurrences", "mamba3"]

from ....lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
