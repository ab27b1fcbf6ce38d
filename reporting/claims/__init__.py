"""A claim is held against the results, seed by seed, and confirmed, refuted or left undecided."""
