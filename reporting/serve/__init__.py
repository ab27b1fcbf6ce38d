"""A served page shows what the store has now, and nothing that it is asked changes anything.

`http_server` answers requests, `access` says which, and `site` with what: pages, figures, and the parts of a
page that have changed. `store_reader` reads the store once for all who look. `sections` are those of a
study's page: `progress`, `learning` curves, `trial_rows` and what the report has. `recipe_plan` is what a
recipe in a field costs. Templates are in `templates/`, the style of pages and their script in `static/`.
"""
