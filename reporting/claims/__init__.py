"""A claim is held against the results, seed by seed, and confirmed, refuted or left undecided.

`check` holds all claims of a study against its results: `cell_values` reads them, `comparable_cells` has the
variance of a comparison, `hypothesis_test` decides it, `verdicts` are the outcome. `labels` names
comparisons, `measured` says what their metrics are, `terminal` writes it all.
"""
