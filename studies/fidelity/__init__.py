"""A rung is a training of its own at a smaller fidelity, and only that of the last one is the point's result.

`reader` finds what a search's points are trained less on first, and makes a factor of it that no point
chooses; `rungs` says how many points come to each rung.
"""

from .reader import expand_fidelity
from .rungs import Fidelity, promoted_count

__all__ = ["Fidelity", "expand_fidelity", "promoted_count"]
