"""A report is one HTML page without network or script, the same text for the same store.

`document` puts the page together. Each module `section_…` finds the values of one section, or None where it
has nothing to say, from the `inputs` that all share. The template of the section's name in `templates/` says
what they look like, with `macros.html` and `style.css`, for light and dark, a screen, a phone and paper.
"""

from .document import report

__all__ = ["report"]
