"""Kernels of other programs, which replace a plain form where they are seen to agree with it.

`choice` decides when a kernel is used, and `recurrences` calls those of
flash-linear-attention, the extra `fla`.
"""
