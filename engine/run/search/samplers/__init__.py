"""Samplers, which propose the points of a search from the store alone.

Optuna's come through `restartable`; `evolution` is our own, and so is `gp_trees`, a Gaussian process over
recipes with an optional `prior`. All propose the same points after a restart.
"""
