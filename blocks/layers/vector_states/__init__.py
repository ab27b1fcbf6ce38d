"""The state is a vector, or a few numbers for each of its channels, carried from position to position.

`scan` computes the recurrences whose channels decay by themselves for all positions, `recurrent_channels` has
what stands around them, and `diagonal_recurrences` are those blocks.
"""

from . import diagonal_recurrences  # each registers its blocks

__all__ = ["diagonal_recurrences"]
