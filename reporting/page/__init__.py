"""A report is one HTML page without network or script, the same text for the same store.

`report` puts the page together. Each section takes its values from the shared `inputs`, or returns None if it
has nothing to show: `section_question`, `section_status`, `section_models`, `section_results`,
`section_claims`, `section_failures`, `section_settings`, `section_provenance` and `section_reproduce`. They
are laid out by templates in `templates/`, with `macros.html` and `style.css`, for light and dark, a screen, a
phone and paper.
"""

from .report import report

__all__ = ["report"]
