"""Upkeep of a store.

`store_upkeep` has all of it; `checking` finds what is wrong, and files that nothing reads any more.
"""

from .checking import Finding, FindingKind, StoreCheck
from .store_upkeep import Forgotten, StoreUpkeep

__all__ = ["Finding", "FindingKind", "Forgotten", "StoreCheck", "StoreUpkeep"]
