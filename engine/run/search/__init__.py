"""Searches: points that Optuna proposes, trained as cohorts of trials.

`search` is the driver, `ask_tell` asks Optuna for points and tells it how they ended, and `stored_points` is
the store's view of the points. `samplers` propose points; `factories` makes the sampler and the scheduler by
name, and `conformance` has the checks that both must pass. `race` compares points after each seed, `rungs`
after each training of another fidelity. `proposals` serves programs that search as well.
"""
