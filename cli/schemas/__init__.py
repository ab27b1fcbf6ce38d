"""What a command prints for programs has one form, and the number of that form.

`forms` has the form of each command; `catalogs`, `studies` and `stores` are these, `recipes` are what is
known of recipes, `search_points` the lines of searches beside programs.
"""

from typing import Final

SCHEMA: Final = 1
"""The number of the forms: raised when a field goes or means something else, not when one is added."""
