"""The state is a vector, or a few numbers for each of its channels, carried from position to position.

`scan` computes the recurrences whose channels decay by themselves for all positions, and reads states that
are too many to be kept; `recurrent_channels` has those blocks, and `slstm` is computed step by step.
"""

from . import recurrent_channels, slstm  # each registers its blocks

__all__ = ["recurrent_channels", "slstm"]
