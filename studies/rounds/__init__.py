"""Rounds of an ablation path: what a study tries next follows from the rows of its store.

`follow` is what commands and runs know such a study by; `ablation_path` keeps the best change of each round.
"""

from .follow import follow_rounds, has_more

__all__ = ["follow_rounds", "has_more"]
