"""Fills holes with levels and makes trials with ids of cells; every fault of every cell is reported.

`template` is the study as written, `fragments` and `holes` fill it, `resolve` turns it into settings and
`trial` adds the id, which covers the `plugin_code` that is used. `grid` makes all trials of a grid and
`search_points` the points of a search; `parameter_matching` solves sizes, `study_budget` excludes models by
their `costs`. `level_checks` and `compatibility` find faults in a `draft`.
"""
