"""Samplers, which propose the points of a search from the store alone.

`../ask_tell.py` wraps Optuna's samplers. `evolution` is built in, and so is `gp_trees`, a Gaussian process
over recipes. All propose the same points after a restart.
"""
