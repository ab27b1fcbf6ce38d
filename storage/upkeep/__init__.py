"""All that is wrong with a store is told before anything is changed.

`findings` are what is told, `checking` finds them, `leftovers` are those that can be removed, and `repair`
moves damaged files away after what is intact of them is kept.
"""

from .checking import StoreCheck, check_store
from .findings import Finding, FindingKind
from .leftovers import remove_leftovers
from .repair import repair_store

__all__ = ["Finding", "FindingKind", "StoreCheck", "check_store", "remove_leftovers", "repair_store"]
