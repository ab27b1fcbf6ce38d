"""The state is a vector, or a few numbers for each of its channels.

`recurrent_channels` has what these blocks share, and `diagonal_recurrences` those whose channels decay by
themselves; `selective_scan` gives each channel several numbers, and the gates of `slstm` see the state.
"""

from . import diagonal_recurrences, selective_scan, slstm  # each registers its blocks

__all__ = ["diagonal_recurrences", "selective_scan", "slstm"]
