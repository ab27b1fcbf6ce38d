"""Which study is meant: a file, one that comes with the package, or one as it was last run."""

from __future__ import annotations

from collections.abc import Sequence

from ..studies.recall import as_last_run
from ..studies.study import Study, load

__all__ = ["as_last_run", "as_written"]


def as_written(what: str, overrides: Sequence[str]) -> Study:
    """The study of a file, or of one that comes with the package; StudyError with every fault."""
    return load(what, overrides)
