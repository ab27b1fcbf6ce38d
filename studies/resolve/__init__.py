"""Fills holes with levels and makes trials with ids of cells; every fault of every cell is reported.

`template` is the study as written, `draft` checks what fills its holes, and `resolve` turns it into
settings, whose conflicts `compatibility` finds. `trial` adds the id. `grid` makes all trials of a grid,
`search_points` the points of a search; `costs` are those of a trial's model.
"""
