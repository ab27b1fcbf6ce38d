"""Treebanks: bracketed trees, and the linear form in which a model reads and writes them."""
