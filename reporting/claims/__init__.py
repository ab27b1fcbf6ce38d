"""A claim is held against the results, seed by seed, and confirmed, refuted or left undecided.

`check` holds all claims of a study against its results: `cell_values` reads them, with the variance of a
comparison, `hypothesis_test` decides it, `verdicts` are the outcome. `labels` names comparisons, `terminal`
writes it all.
"""
