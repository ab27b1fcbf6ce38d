"""Features of a study that one key turns on, one in each file, found by the key's name.

`ladder` grows several sizes together, `match` finds sizes with equal costs, `ablate` removes parts of a
recipe, and `fidelity` has the rungs of a search. `when` makes factors conditional, and `labels` names cells.
Each has `EXPANSION`, a subclass of `schema.expansion.Expansion`.
"""
