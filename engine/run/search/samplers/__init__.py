"""Samplers, which propose the points of a search from the store alone.

`factory` makes the sampler of a search: Optuna's through `restartable`, `evolution`, and `gp_trees`, a
Gaussian process over recipes with an optional `prior`. All propose the same points after a restart.
"""
