"""What queries see of a window is one function of tensors, computed here in several ways that give the same.

`inputs` says what goes in, and `choice` which way is taken. `products` computes it as it is written down, on
any device and in any transformation. On a CPU `fused_pieces` does by torch's fused attention, where scores
are by content alone, and `tiles` in pieces that stay in its cache, with a backward pass of their own and
`tile_products`; on a GPU `flex` by FlexAttention. `by_distance` lays numbers out by key or by distance.
"""
