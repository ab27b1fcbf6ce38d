"""Samplers, which propose the points of a search from the store alone.

`factory` makes the sampler of a search: Optuna's own through `restartable`, and four of ours: `evolution`,
`quasi_random`, `cma_es`, and `gp_trees`, a Gaussian process over recipes. All propose the same points after a
restart. `prior` mixes a study's beliefs into a sampler.
"""
