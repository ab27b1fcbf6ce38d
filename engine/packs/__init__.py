"""Packs: trials of one form that take their steps together; only rounding differs from separate training.

`packer` decides which trials fit together, and has them take their steps. `stacked_steps` computes the
gradients by `torch.vmap`, and updates the weights.
"""
