"""Packs: trials of one form that take their steps together; results equal separate training up to rounding.

`packer` decides which trials fit together, and has them take their steps. `stacked_steps` computes the
gradients by `torch.vmap`, and updates the weights.
"""
