"""Rows become values, and values become tables, curves, verdicts and pages; nothing here trains or prints.

`results` opens a study with its store, and `notebook` shows its tables and figures in a notebook. Rows become
one tidy frame in `frames`, and `subject` holds the selected trials of one result with its words. `kinds` has
a module for each kind of table and figure, `tables` and `curves` what these share, `claims` the verdicts, and
`added_seeds` finds what decides more of them. `page` is the report of it all, and `serve` shows it while it
grows.

`scores` puts methods on one scale. `paper_tables` are a paper's own tables. `recipes` shows what a recipe
costs, and `search` what a search found. `statistics` has the tests and intervals for a few seeds. `outcomes`
loads the latest attempts and says where they were computed. `noise_floor` finds the differences that the
spread over seeds hides, and `output_comparison` tests whether written outputs differ. `kept_models` lists the
models in the store. `sql` runs queries over rows in a separate process, `sql_process`.
"""

from ..lazy_exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__)
