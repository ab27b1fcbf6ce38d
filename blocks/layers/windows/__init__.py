"""Attention within a window as one function of tensors, computed in several ways with equal results.

`pieces` defines the arguments, and follows the definition by plain products, on any device and under any
transformation. On a CPU torch's fused attention computes scores by content alone, and `tiles` work in pieces
that stay in the cache, with their own backward pass; on a GPU `flex` uses FlexAttention. `choice` picks the
way.
"""
