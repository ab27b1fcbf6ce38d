"""Equations of blocks as plain loops over one sequence, in double precision.

Importing this folder registers the reference of every built-in block of one sequence. `common` has
convolutions, feed-forward layers, recurrent layers and pools; the other files have the names of families.
"""

from . import attention, common, matrix_states, vector_states

__all__ = ["attention", "common", "matrix_states", "vector_states"]
