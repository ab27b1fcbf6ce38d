"""Resolution of a study: holes are filled with levels, and trials get their ids.

All faults of the study file are reported together.

`template` is the study as written and makes settings, whose conflicts `compatibility` finds and whose steps
`training_budget` counts. `draft` checks the fillings of its holes. `trial` adds the id. `grid` makes all
trials of a grid, and `search_source` those of a search's points. `costs` computes the costs of a trial's
model.
"""
