"""Optimisers, and the weights that they update.

`build` makes the optimiser of [train], among them some that torch lacks, changes its settings during a
training, and counts its bytes. `weights` holds a model, compiled or not, with its optimiser and weight
average, and clips gradients.
"""
