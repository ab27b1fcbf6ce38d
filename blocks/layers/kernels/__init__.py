"""Kernels of other libraries, which replace a plain form where they are seen to agree with it.

`choice` decides when a kernel is used, and `recurrences` calls the kernels of flash-linear-attention, the
extra `fla`.
"""
