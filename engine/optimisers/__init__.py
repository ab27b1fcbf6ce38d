"""Optimisers, and the weights that they update.

`build` makes the optimiser that [train] names, even if torch does not have it. It also changes the settings
during a training, and counts the bytes of the optimiser's state. `weights` holds a model, compiled or not,
with its optimiser and weight average, and clips gradients.
"""
