"""Packs: trials of equal shapes that take their steps together; only rounding changes their results.

`packer` decides which trials fit together, and has them take their steps. `stacked_steps` computes the
gradients by `torch.vmap`, and updates the weights.
"""
