"""A report is one HTML page without network or script, the same text for the same store.

`document` puts the page together. Each section finds its values in the `inputs` that all share, or None
where it has nothing to say: `section_question`, `section_status`, `section_models`, `section_results`,
`section_claims`, `section_failures`, `section_settings`, `section_provenance` and `section_reproduce`. The
template of the same name in `templates/` says what they look like, with `macros.html` and `style.css`, for
light and dark, a screen, a phone and paper.
"""

from .document import report

__all__ = ["report"]
