"""Optimisers, and the weights that they update.

`build` makes the optimiser of [train], changes its settings during a training, and counts its bytes. `rules`
has optimisers that torch lacks. `weights` holds a model with its optimiser and weight average, and clips
gradients. `parameter_groups` gives weights their own learning rates, and `compiled_body` compiles a model's
body.
"""
