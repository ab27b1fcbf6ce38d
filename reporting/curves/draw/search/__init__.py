"""How the points of a search are drawn: those that are best in the accent, all others in grey.

`trace` draws them in order, `slices` over each dimension, `planes` over two, and `parallel` as lines over
all of them.
"""
