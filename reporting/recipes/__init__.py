"""Views of a recipe: a tree with its costs, a picture, and the most similar stored recipes.

`display` has the objects that notebooks and terminals show. `breakdown` makes the tree, and `svg` the
picture. `nearest` finds the most similar stored recipes, with their results.
"""
