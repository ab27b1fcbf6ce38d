"""Upkeep of a store.

`store_upkeep` has all of it. `checking` finds what is wrong, as `findings`; `leftovers` are files that
nothing reads any more; `removal` forgets trials and renames studies.
"""

from .checking import StoreCheck
from .findings import Finding, FindingKind
from .removal import Forgotten
from .store_upkeep import StoreUpkeep

__all__ = ["Finding", "FindingKind", "Forgotten", "StoreCheck", "StoreUpkeep"]
