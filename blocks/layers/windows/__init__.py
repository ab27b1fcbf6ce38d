"""Attention within a window as one function of tensors, computed in several ways with equal results.

`inputs` defines the arguments, and `choice` picks the way. `products` follows the definition, on any device
and under any transformation. On a CPU `fused_pieces` uses torch's fused attention where scores depend on
content alone, and `tiles` work in pieces that stay in the cache, with their own backward pass and
`tile_products`; on a GPU `flex` uses FlexAttention. `by_distance` lays numbers out by key or by distance.
"""
