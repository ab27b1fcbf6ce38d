"""Models of one recipe are computed as one: each gets what it gives alone, up to the rounding of a product.

`stacked_models` makes one module of several models. `leaves` are the parts of it that have weights, with the
attention of `short_attention` and norms by `standardise`; `stacked_weights` lays weights side by side.
"""

from .stacked_models import StackedModels, can_be_stacked
from .stacked_weights import part_of, stack_weights

__all__ = ["StackedModels", "can_be_stacked", "part_of", "stack_weights"]
