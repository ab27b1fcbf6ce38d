"""What queries see of a window is one function of tensors, computed here in several ways that give the same.

`inputs` says what goes in; `products` computes it as it is written down, `tiles` in pieces that stay in a
processor's cache, with a backward pass of its own. `by_distance` lays numbers out by key or by distance.
"""
