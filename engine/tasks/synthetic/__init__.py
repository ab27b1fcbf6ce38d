"""Examples of the synthetic tasks, drawn and solved.

All devices get the same examples. `state_tracking`, `recall`, `chomsky`, `listops` and `mad` implement the
tasks of these names. `lengths` handles several lengths in one batch.
"""

from . import chomsky, listops, mad, recall, state_tracking  # importing a module registers its rules

__all__ = ["chomsky", "listops", "mad", "recall", "state_tracking"]
