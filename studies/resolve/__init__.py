"""Resolution of a study: fill holes with levels, and make trials with ids; report each fault of each cell.

`template` is the study as written, `draft` checks what fills its holes, and `resolve` turns it into
settings, whose conflicts `compatibility` finds. `trial` adds the id. `grid` makes all trials of a grid, and
`search_points` makes the points of a search. `costs` computes the costs of a trial's model.
"""
