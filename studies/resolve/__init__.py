"""Holes are filled with levels, and cells become trials with ids; every fault of every cell is told.

`template` is what was written, `fragments` and `holes` fill it, `resolve` makes settings of it and `trial`
the id. `grid` makes all trials of a grid and `search_points` those of a search, `parameter_matching` solves
sizes, `study_budget` leaves out what is too large by its `costs`. `level_checks` and `compatibility` find
faults, gathered in a `draft`.
"""
