"""Treebanks: bracketed trees, and the linear form in which a model reads and writes them.

`penn_trees` reads and writes brackets, `linearised` is the form of a model, and `corpus` makes pairs of both.
"""
