"""Optional features of a study, one in each file.

A file has the name of the study-file key, or of the scheduler, that turns its feature on. `ladder` grows
several sizes together, `match` finds sizes with equal costs, `ablate` removes parts of a recipe, and `asha`
has the rungs of a search. `when` makes factors conditional. Each has `EXPANSION`, a subclass of
`schema.design.Expansion`.
"""
