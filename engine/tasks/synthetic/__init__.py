"""The rules of the synthetic tasks: a seeded generator of the CPU gives the same examples on every device.

`state_tracking` and `recall` draw the tasks of these names, `lengths` has what sequences of many lengths need.
"""

from . import recall, state_tracking  # each gives its rules

__all__ = ["recall", "state_tracking"]
