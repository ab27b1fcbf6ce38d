"""The rules of the synthetic tasks; the same examples on every device.

`state_tracking`, `recall`, `chomsky`, `listops`, `mad` and `pathfinder` draw the tasks of these names.
`lengths` is for many lengths in one batch, `contours` for those in pathfinder's images.
"""

from . import chomsky, listops, mad, pathfinder, recall, state_tracking  # each gives its rules

__all__ = ["chomsky", "listops", "mad", "pathfinder", "recall", "state_tracking"]
