"""Where rows were computed, as a person reads it: the commit of the code, and the versions below it."""

from __future__ import annotations

COMMIT_DIGITS = 7
"""So many digits of a commit are shown."""


def short_commit(commit: str) -> str:
    """A row's commit with fewer digits, and all of what differed from it: 5d02964+a1b2c3d4."""
    base, plus, changes = commit.partition("+")
    return base[:COMMIT_DIGITS] + plus + changes


def torch_words(torch_version: str, cuda_version: str | None) -> str:
    """A row's versions of torch and, on a GPU, of CUDA."""
    return f"torch {torch_version}" + (f" with CUDA {cuda_version}" if cuda_version else "")
