"""Attention within a window as one function of tensors, computed in several ways with equal results.

- `pieces` defines the arguments, and computes the definition by plain products, on any device and under any
  transformation. Torch's fused attention computes scores by content alone on a CPU.
- `tiles` works on a CPU in pieces that stay in the cache, with its own backward pass.
"""
