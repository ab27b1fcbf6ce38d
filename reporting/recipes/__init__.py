"""A recipe is shown as a tree with its costs, as a picture, or beside others.

`display` has the objects that show themselves. `breakdown` is the tree, `svg` the picture. `nearest` are the
stored ones that are most like one, with their results.
"""
