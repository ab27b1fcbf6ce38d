"""Results of a search, from the rows of a store alone.

`points` has each point with its objectives, and the best of them; `pareto` finds those that no other beats,
and `words` describes a search.
"""
