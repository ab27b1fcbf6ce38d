"""Trials of one form that take their steps together, each with the results that it has alone, up to rounding.

`form` decides which trials can, and counts them before anything trains. `attempts` trains a cohort of them,
`pack` takes the steps of an epoch, and `gate` remembers where that is faster. `stacked_steps` computes the
gradients by `torch.vmap`, and `stacked_optimiser` moves the weights.
"""
