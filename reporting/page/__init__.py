"""A report is one HTML page without network or script, the same text for the same store.

`document` puts the page together from sections. Each is a function of the `material` that gives None where
it has nothing to say: `asking`, `standing`, `modelling`, `findings`, `judging`, `failing`, `values`,
`origins` and `repeating`, in the order in which a reader asks. How it is written is `markup`, how it looks
`style.css`, for light and dark, for a screen, a phone and paper.
"""

from .document import report

__all__ = ["report"]
