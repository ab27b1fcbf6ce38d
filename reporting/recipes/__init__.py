"""Views of a recipe: a tree with its costs, a picture, and the stored recipes nearest to it.

`display` has the objects that notebooks and terminals show. `breakdown` is the tree, `svg` the picture.
`nearest` finds the stored recipes that are most like one, with their results.
"""
