"""Features of a study, each in a file with the name of the key that turns the feature on.

`ladder` grows several sizes together, `match` finds sizes with equal costs, `ablate` removes parts of a
recipe, and `fidelity` has the rungs of a search. `when` makes factors conditional, and `labels` names cells.
Each has `EXPANSION`, a subclass of `schema.expansion.Expansion`.
"""
