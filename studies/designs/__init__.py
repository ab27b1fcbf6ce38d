"""Designs: rules that choose which combinations of factor levels a study trains.

A file is named like the `name` of `[study] design` that selects its design. `grid` has all combinations.
`one_at_a_time` changes one factor of the baseline. `zip` combines the first levels of all factors, then the
second levels, and so on. `fractional` and `plackett_burman` are fractions of two-level grids; `random` and
`latin_hypercube` are samples. Each file has `DESIGN`, a subclass of `schema.design.Design`, and the class of
the design's own keys.
"""

from ...lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
