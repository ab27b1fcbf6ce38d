"""Attention within a window, computed by several methods with equal results.

- `pieces` defines the arguments, and computes the definition by plain products, on any device and under any
  transformation.
- `tiles` works on a CPU in pieces that stay in the cache, with its own backward pass.
"""

from ....lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
