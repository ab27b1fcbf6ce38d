"""Results of a search, read from the rows of a store.

`points` has each point with its objectives, and the best ones or the Pareto front; `words` describes a
search.
"""
