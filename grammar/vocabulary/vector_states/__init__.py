"""The state is a vector, or a few numbers for each of its channels.

`recurrent_channels` has what these blocks share, and `diagonal_recurrences` those whose channels decay by
themselves.
"""

from . import diagonal_recurrences  # each registers its blocks

__all__ = ["diagonal_recurrences"]
