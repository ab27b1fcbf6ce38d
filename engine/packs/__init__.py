"""Trials of one form that take their steps together, each with the results that it has alone, up to rounding.

`form` decides which trials can, and counts them before anything trains. `packer` trains a cohort of them;
`stacked_steps` computes the gradients by `torch.vmap`, and `stacked_optimiser` moves the weights.
"""
