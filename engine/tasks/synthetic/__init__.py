"""The rules of the synthetic tasks: a seeded generator of the CPU gives the same examples on every device.

`state_tracking`, `recall` and `chomsky` draw the tasks of these names; `lengths` is for many lengths in one
batch.
"""

from . import chomsky, recall, state_tracking  # each gives its rules

__all__ = ["chomsky", "recall", "state_tracking"]
