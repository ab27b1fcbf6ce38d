"""Results of a search, read from the rows of a store.

`points` has each point with its objectives, and the best ones or the Pareto front; `words` describes a
search.
"""

from ...lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
