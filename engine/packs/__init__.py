"""Packs: trials of one form that take their steps together; results equal separate training up to rounding.

`form` decides which trials fit together, and counts packs in advance. `packer` trains the trials of a cohort.
`stacked_steps` computes the gradients by `torch.vmap`, and updates the weights.
"""
