"""The store is a search's only memory: Optuna is told what is in it, and asked for the next point.

`optuna_search` makes cohorts of the points that Optuna proposes, `stored_points` are those that the store
holds, as Optuna knows them, and `optuna_space` has dimensions in Optuna's terms. `samplers` has samplers and
schedulers, and `conformance` is what these must hold to. Three samplers are our own: `evolution` with its
`population`, `quasi_random`, and `gp_trees`, which is a `gaussian_process` on `recipe_features` of the
`told_points`. `proposals` is where a program asks what a search would try next, and `handed_in` reads what it
would try itself.
"""
