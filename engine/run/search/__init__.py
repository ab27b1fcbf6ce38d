"""Searches: points that Optuna proposes, trained as cohorts of trials.

`search` is the driver, `ask_tell` asks Optuna for points and tells it how they ended, and `stored_points` is
the store's view of the points. `samplers` propose points, `schedulers` give them up, and `conformance` has
the checks that both must pass. `proposals` and `handed_in` serve programs that search as well.
"""
