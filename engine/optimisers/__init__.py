"""Optimisers, and the weights that they update.

`build` makes the optimiser of [train], changes its settings during a training, and counts its bytes. `rules`
has optimisers that torch lacks. `weights` holds a model, compiled or not, with its optimiser and
weight average, and clips gradients.
"""
