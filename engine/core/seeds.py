"""Seeds by purpose: data, initialisation, evaluation and dropout draw from streams of their own."""

import hashlib


def derive_seed(seed: int, purpose: str) -> int:
    """Return a 63-bit seed for one purpose of a trial, the same whatever the recipe is."""
    digest = hashlib.sha256(f"{seed}:{purpose}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
