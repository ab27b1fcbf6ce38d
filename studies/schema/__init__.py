"""Every table of a study file: its keys, types and bounds, and what fits together."""
