"""Claims tested against the results, seed by seed: confirmed, refuted or undecided.

`check` tests all claims of a study. `cell_values` reads the results, with the variance of a comparison.
`hypothesis_test` decides a comparison, and `verdicts` are the outcome. `labels` names comparisons, and
`terminal` formats claims for a terminal.
"""
