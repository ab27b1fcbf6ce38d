"""Views of a recipe: a tree with its costs, a picture, and the most similar stored recipes.

`display` has the objects that notebooks and terminals show. `breakdown` makes the tree, and `svg` the
picture. `nearest` finds the most similar stored recipes, with their results.
"""

from ...lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
