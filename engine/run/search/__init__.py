"""The store is a search's only memory: Optuna is told what is in it, and asked for the next point.

`optuna_search` makes cohorts of the points that Optuna proposes, `stored_points` are those that the store
holds, as Optuna knows them, `begun_points` those that somebody has begun, and `unseen_points` those that are
left; `told_studies` is what samplers learn from. `samplers` propose points, `schedulers` give them up,
`conformance` is what these must hold to, and what is `plugged_in` is told by name. `proposals` is where a
program asks what a search would try next, and `handed_in` reads what it would try itself.
"""
