"""Designs: rules that choose which combinations of factor levels a study trains.

A file is named like the `name` of `[study] design` that selects its design. `grid` has all combinations.
`one_at_a_time` changes one factor of the baseline. `zip` combines the first levels of all factors, then the
second levels, and so on. Each file has `DESIGN`, a subclass of `schema.design.Design`. Plug-ins register
further designs (`schema/plugin_design.py`).
"""
