"""Results of a search, read from the rows of a store.

`points` has each point with its objectives, and the best ones; `pareto` computes Pareto fronts, and `words`
describes a search.
"""
