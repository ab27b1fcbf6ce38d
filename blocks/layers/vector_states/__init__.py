"""Recurrences whose state is one number, or a few numbers, for each channel.

`scans` computes recurrences in which each channel decays separately, for all positions at once. It also reads
states that are too large to keep. `recurrent_channels` has these blocks, and sLSTM, which is computed step by
step.
"""

from . import recurrent_channels  # registers its blocks

__all__ = ["recurrent_channels"]

from ....lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
