"""Samplers, which propose the points of a search.

They depend only on what is in the store. `../ask_tell.py` wraps Optuna's samplers. `evolution` is built in,
and so is `gp_trees`, a Gaussian process over recipes. After a restart, all samplers propose the same points
as without the restart.
"""

from .....lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
