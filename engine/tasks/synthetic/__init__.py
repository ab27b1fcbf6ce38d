"""Rules of the synthetic tasks; examples are the same on every device.

`state_tracking`, `recall`, `chomsky`, `listops`, `mad` and `pathfinder` implement the tasks of these names.
`lengths` handles several lengths in one batch, and `contours` draws the paths of pathfinder's images.
"""

from . import chomsky, listops, mad, pathfinder, recall, state_tracking  # each gives its rules

__all__ = ["chomsky", "listops", "mad", "pathfinder", "recall", "state_tracking"]
