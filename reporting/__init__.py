"""Tables, figures, verdicts and pages from stored results.

Nothing here trains or prints. `results` opens a study with its store, and makes tables, figures and verdicts
from them. `subject` turns rows of the store into a tidy frame, and selects
the rows of one table or figure. `kinds` has a module for each kind of table and figure, and `tables` and
`curves` have the code that they share. `claims` has the verdicts, and `added_seeds` chooses seeds that decide
more claims. `page` is the report of a study, and `serve` shows it while the study runs. `manuscript` writes
the results of several studies for one's own paper, and `several_studies` puts them into one table.

`paper` has a paper's own tables, and our results for it. `recipes` shows what a recipe costs, and `search`
what a search found. `statistics` has tests and intervals of few seeds. `outcomes` loads the latest attempts
with their provenance. `missing_ablations` finds the ablations that a study lacks. `kept_models` lists the
models in the store. `sql` runs queries over rows.
"""

from ..lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
