"""What queries see of a window is one function of tensors, computed here in several ways that give the same.

`inputs` says what goes in, and `choice` which way is taken. `products` computes it as it is written down, on
any device and in any transformation; `tiles` on a CPU in pieces that stay in its cache, with a backward pass
of their own; `flex` on a GPU by FlexAttention. `by_distance` lays numbers out by key or by distance.
"""
