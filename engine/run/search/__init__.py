"""Searches for the best values of a study's dimensions.

A search point sets a value for each dimension. A sampler proposes points, and each has a trial for every
seed. `search` is the driver, and drops points early. `optuna_study` makes the sampler and the scheduler by
name, asks them for points and reports results, and `stored_points` reads the points in the store.
`samplers` propose points, and `conformance` has the checks of samplers and schedulers.
"""
