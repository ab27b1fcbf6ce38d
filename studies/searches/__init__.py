"""What a search has found follows from the rows of a store alone.

`points` has each point with its objectives and whether it keeps to the limits, `pareto` which of them no
other beats, `best_points` those that are shown first; `words` says what a search is after, `space_size` of
how many architectures it chooses, and `rung_costs` what its rungs cost.
"""
