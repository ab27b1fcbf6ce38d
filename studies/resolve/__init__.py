"""Resolution of a study: fill placeholders with levels, make trials with ids, and report all faults.

`template` is the study as written and makes settings, whose conflicts `compatibility` finds and whose steps
`training_budget` counts. `draft` checks the fillings of its holes. `trial` adds the id. `grid`
makes all trials of a grid, and `search_points` makes the points of a search. `costs` computes the costs of a
trial's model.
"""
