"""An optimiser is made of the settings in [train] and moves every weight of a model once a step.

`build` makes them, `lion` and `muon` are those that torch does not have in this form.
"""

from .build import build_optimizer

__all__ = ["build_optimizer"]
