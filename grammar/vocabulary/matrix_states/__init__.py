"""A head's state is a matrix of one size at any length, which keys and values write and queries read.

`recurrent_heads` has what all of these blocks share, `linear_recurrences` those whose state is kept or
decays, and `delta_rule` and `generalised_delta` those that correct what is held; `mlstm`
has exponential gates, and the state of `inner_model` is a model that learns.
"""

from . import (
    delta_rule,
    generalised_delta,
    inner_model,
    linear_recurrences,
    mlstm,
)  # each registers its blocks

__all__ = ["delta_rule", "generalised_delta", "inner_model", "linear_recurrences", "mlstm"]
