"""Rows become values, and values become tables, curves, verdicts and pages; nothing here trains or prints.

`results` opens a study with its store, and `notebook` shows its tables and figures in a notebook. `frames`
are the store's rows as data frames, `sql` answers questions about them in a process of its own,
`sql_process`. `tables`, `curves` and `claims` are what a study file asks for, `added_seeds` finds what
decides more of it, `page` is the report of it all, and `serve` shows it while it grows. `recipes` shows
what a recipe costs, `search` what a search found, `statistics` says how sure a few seeds can be, and
`outcomes` reads the rows that all of them show; `observations` are a metric's values with their levels,
`factor_models` models of them, and `scores` puts them on one scale, `scaling_cells` fits laws to them;
`provenance` is how these say where they were computed. `noise_floor` is what spread over seeds hides.
`output_comparison` says how surely what trained models wrote differs, `kept_models` which of them the store
has. `latex_text` is what LaTeX takes of a text.
"""

from ..lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
