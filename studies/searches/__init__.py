"""Results of a search, from the rows of a store alone.

`points` has each point with its objectives and whether it respects the limits, `pareto` those that no other
beats, `best_points` those that are shown first; `words` describes a search, `space_size` counts its
architectures, and `rung_costs` the cost of its rungs.
"""
