"""A recipe with search dimensions is a space: the recipes without any that it can become, each of them once.

`settling` names the dimensions and settles them one by one. `members` lists what a space has, in order;
`classes` counts it and finds a member by its number, with `words`, `sums` and `numbers` for the parts that
several options share; `ways` finds how a member is chosen; `budget` leaves members out. `spaces` has the
class that they serve.
"""

from .settling import Ask, dimensions, label, resolve

__all__ = ["Ask", "dimensions", "label", "resolve"]
