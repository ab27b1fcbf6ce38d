"""A TOML text with positions: overrides go in, faults come out under their lines."""
