"""A head's state is a matrix of one size at any length: trained in chunks, read step by step.

`recurrent_heads` has what stands around a recurrence, `linear_recurrences` those whose state is kept or
decays, computed by `chunked_recurrence`, or by `shared_key_sums` where heads share queries and keys, and
`delta_rule` those that correct what is held; `mlstm` has exponential gates, and the
state of `inner_model` is a model that learns.
"""

from . import (
    delta_rule,
    inner_model,
    linear_recurrences,
    mlstm,
)  # each registers its blocks

__all__ = ["delta_rule", "inner_model", "linear_recurrences", "mlstm"]
