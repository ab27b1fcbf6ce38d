"""Recurrences whose state is one number, or a few numbers, for each channel.

`scans` computes recurrences in which each channel decays separately, for all positions at once. It also reads
states that are too large to keep. `recurrent_channels` has these blocks, and sLSTM, which is computed step by
step.
"""

# each registers its blocks
from . import recurrent_channels as recurrent_channels
