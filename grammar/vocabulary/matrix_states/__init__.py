"""A head's state is a matrix of one size at any length, which keys and values write and queries read.

`recurrent_heads` has what all of these blocks share, `linear_recurrences` those whose state is kept or
decays, and `delta_rule` and `generalised_delta` those that correct what is held; `mlstm`
has exponential gates.
"""

from . import delta_rule, generalised_delta, linear_recurrences, mlstm  # each registers its blocks

__all__ = ["delta_rule", "generalised_delta", "linear_recurrences", "mlstm"]
