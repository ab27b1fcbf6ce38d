"""Rungs of a search: trainings at a smaller fidelity, of which only the last gives the point's result.

`reader` finds what a search's points are trained less on first, and makes it a factor; `rungs` says how
many points reach each rung.
"""

from .reader import expand_fidelity
from .rungs import Fidelity, promoted_count

__all__ = ["Fidelity", "expand_fidelity", "promoted_count"]
