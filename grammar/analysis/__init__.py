"""Analysis of a recipe: parameters, FLOPs, training memory and reach of its model.

The reach is how many tokens on the left and on the right can affect an output. `analyse` walks the recipe's
tree and returns the parts with their costs. `measured_costs` measures costs from modules and caches them.
"""

from ...lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
