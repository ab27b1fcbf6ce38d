"""Tests of claims against the results.

A claim is confirmed, refuted or undecided. `check` tests all claims of a study and names their comparisons.
`cell_values` reads the results, with the variance of a comparison. `hypothesis_test` decides a comparison,
and `verdicts` are the outcome. `terminal` formats claims for a terminal.
"""

from ...lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
