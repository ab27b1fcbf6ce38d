"""The report of a study: one HTML page that needs no network and no scripts.

The same study and results always give the same page. `report` assembles the page. A section takes its values
from the shared `inputs`, or is None if it is empty. `section_study` has the question, the recipes, the
commands and the settings. `section_results` has claims, best points, tables, figures, status, failures and
provenance.
Templates in `templates/`, with `macros.html` and `style.css`, lay them out for light and dark, a screen, a
phone and paper.
"""

from .report import report
from .section_study import leading_comment

__all__ = ["leading_comment", "report"]
