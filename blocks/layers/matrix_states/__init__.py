"""Recurrent blocks whose state is a matrix for each head.

Training computes chunks of positions by products, and generation computes single positions.

- `recurrent_heads` has the parts around a recurrence.
- `linear_recurrences` has recurrences whose state is kept or decays, and mLSTM's exponential gates.
  `chunked_recurrence` computes them.
- `delta_rule` has recurrences that correct their state.
- `inner_model` has a state that is itself a model that learns.
"""

# each registers its blocks
from . import delta_rule as delta_rule
from . import inner_model as inner_model
from . import linear_recurrences as linear_recurrences
