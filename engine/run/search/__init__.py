"""Searches: points that Optuna proposes, trained as cohorts of trials.

`search` is the driver. `ask_tell` asks Optuna for points and reports their results, and `stored_points` is
the store's view of the points. `samplers` propose points; `factories` makes the sampler and the scheduler by
name, and `conformance` has the checks that both must pass. `race` compares points after each seed, `rungs`
after each training of another fidelity. `proposals` lets other programs take part in a search.
"""
