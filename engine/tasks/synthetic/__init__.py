"""The rules of the synthetic tasks: a seeded generator of the CPU gives the same examples on every device.

`state_tracking`, `recall`, `chomsky`, `listops` and `mad` draw the tasks of these names; `lengths`
is for many lengths in one batch.
"""

from . import chomsky, listops, mad, recall, state_tracking  # each gives its rules

__all__ = ["chomsky", "listops", "mad", "recall", "state_tracking"]
