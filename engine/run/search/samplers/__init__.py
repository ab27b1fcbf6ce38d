"""A sampler proposes points from what Optuna has been told alone, so that a restored search goes on.

`factory` makes the sampler of a search. Six are our own: `tpe`, `evolution` with its `population`,
`quasi_random`, `cma_es`, `prior_band`, and `gp_trees`, a `gaussian_process` on `recipe_features` of the
`told_points`. `generations` has Optuna's genetic ones, which look at each point once.
`optuna_space` has dimensions in Optuna's terms, `numbers` their values as places of a range, and `prior` is
what a study believes of them before anything is known.
"""
