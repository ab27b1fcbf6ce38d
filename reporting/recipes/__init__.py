"""Views of a recipe: a tree with its costs, and a picture.

`display` has the objects that notebooks and terminals show. `breakdown` makes the tree, and `svg` the
picture.
"""
