"""Equations of blocks as plain loops over one sequence, in double precision.

Importing this folder registers the reference of every built-in block of one sequence. `common` has
convolutions, feed-forward layers, recurrent layers and pools; the other files have the names of families.
"""

from ....lazy_exports import lazy_exports

# each registers its references
from . import attention as attention
from . import common as common
from . import matrix_states as matrix_states
from . import vector_states as vector_states

__getattr__, __dir__, __all__ = lazy_exports(__name__)
