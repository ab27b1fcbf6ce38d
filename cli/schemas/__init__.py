"""JSON output of commands, in forms with one number.

`forms` has the form of each command; `catalogs`, `studies`, `stores` and `recipes` define them,
`search_points` the lines of searches beside programs.
"""

from typing import Final

SCHEMA: Final = 1
"""The number of the forms: raised when a field goes or means something else, not when one is added."""
