"""How a process computes on its CPU: with so many threads, and with memory that stays between steps.

What glibc frees of many blocks goes back to the system at once, and whoever takes them again gets empty
pages, one after the other: steps of large batches spend up to a fifth of their time on that.
"""

from __future__ import annotations

import ctypes
import sys

import torch

# of malloc.h
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_NEVER = -1

APART = 2**25
"""Blocks of so many bytes are apart from all others, as large as glibc lets them be."""


def prepare_cpu(threads: int) -> None:
    """Compute with so many threads from now on, and keep what is freed until `give_back_memory`."""
    torch.set_num_threads(threads)
    library = _glibc()
    if library is not None:
        library.mallopt(_M_MMAP_THRESHOLD, APART)
        library.mallopt(_M_TRIM_THRESHOLD, _NEVER)


def give_back_memory() -> None:
    """Give the system back what was freed, gaps between what is held as well.

    To be called when a training is done with, and between parts of work that leave such gaps.
    """
    library = _glibc()
    if library is not None:
        library.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    """The C library, where it is one that can be told; others, and other systems, stay as they are."""
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None
