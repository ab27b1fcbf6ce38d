"""What trials of one form compute together is what each computes alone, up to the rounding of a product.

`form` says which trials can, and `outlook` how many before anything trains; `attempts` trains a cohort of
them, `pack` takes the steps of an epoch, `gate` remembers where that is faster, `stacked_steps` takes them:
`stacked_passes` computes their gradients by `torch.vmap`, and `stacked_optimiser` moves the weights.
"""
