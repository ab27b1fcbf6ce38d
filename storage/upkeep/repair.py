"""The repair of a store: damaged files go to quarantine, and what is intact of merged ones is kept."""

from contextlib import suppress

from ..integrity.quarantine import Quarantine
from ..paths import Layout, StoreError, is_compacted
from ..read import read_verified
from .checking import check_store
from .findings import Finding, FindingKind


def repair_store(layout: Layout) -> list[Finding]:
    """Move every damaged file to quarantine, and return what was wrong with each.

    Of a merged file the intact row groups are written to a new one first. Trials that have lost their row or
    their metrics run again; a trial with a damaged checkpoint goes on from the one before.
    """
    quarantine = Quarantine(layout)
    damaged = [each for each in check_store(layout).findings if each.kind is FindingKind.DAMAGED]
    for finding in damaged:
        if is_compacted(finding.path):
            with suppress(FileNotFoundError, StoreError):
                read_verified(finding.path, quarantine)
        else:
            quarantine.move(finding.path, finding.reason)
    return damaged
