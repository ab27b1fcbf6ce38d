"""All that is wrong with a store is told before anything is changed.

`findings` are what is told, `checking` finds them, `leftovers` are those that can be removed, and `repair`
moves damaged files away after what is intact of them is kept. `removal` forgets trials, or what is kept of
them beside rows, and renames studies, `copying` gives the outcome of a trial to another.
"""

from .checking import StoreCheck, check_store
from .copying import copy_attempt
from .findings import Finding, FindingKind
from .leftovers import remove_leftovers
from .removal import Forgotten, forget, remove_kept, rename
from .repair import repair_store

__all__ = [
    "Finding",
    "FindingKind",
    "Forgotten",
    "StoreCheck",
    "check_store",
    "copy_attempt",
    "forget",
    "remove_kept",
    "remove_leftovers",
    "rename",
    "repair_store",
]
