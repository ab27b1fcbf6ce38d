"""The state is a vector, or a few numbers for each of its channels, carried from position to position.

`scan` computes the recurrences whose channels decay by themselves for all positions, and reads states that
are too many to be kept, `recurrent_channels` has what stands around them, and
`diagonal_recurrences` and `selective_scan` are those blocks; `slstm` is computed step by step.
"""

from . import diagonal_recurrences, selective_scan, slstm  # each registers its blocks

__all__ = ["diagonal_recurrences", "selective_scan", "slstm"]
