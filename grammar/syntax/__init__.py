"""A text becomes a concrete syntax tree with spans; no block is known here."""
