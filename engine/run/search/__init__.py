"""Searches over points (settings of all dimensions), which Optuna proposes and a cohort of trials tests.

`search` is the driver, and drops points early. `ask_tell` makes the sampler and the scheduler by name, asks
Optuna for points and reports their results, and `stored_points` reads the points in the store. `samplers`
propose points, and `conformance` has the checks of samplers and schedulers. `proposals` lets other programs
take part in a search.
"""
