"""Served pages that show what the store has now; no request changes anything.

`http_server` answers requests, and `access` decides which are allowed. `site` makes the responses: pages,
figures, and changed parts of pages. `store_reader` reads the store once for all viewers. `sections` are the
parts of a study's page: `progress`, `learning` curves, `trial_rows` and the sections of the report.
`recipe_plan` shows the costs of an entered recipe. Templates are in `templates/`, the style of pages and
their script in `static/`.
"""
