"""Optimisers, and the weights that they move.

`build` makes the optimiser of [train], changes its settings during a training, and counts its bytes. `rules`
has the optimisers that torch lacks. `weights` holds a model with its optimiser and average, and clips steps.
`parameter_groups` gives weights their own rates, and `compiled_body` compiles a model's body.
"""
