"""The clock of the day as the drivers of this process see it; that of durations stays as it is."""

import ctypes
import gc
import mmap
import struct
import time
from datetime import datetime, timedelta, tzinfo

_shift = mmap.mmap(-1, 8)  # shared with all processes that are forked from this one
_time, _time_ns, _now = time.time, time.time_ns, datetime.now


def set_clock(shift_s: float) -> None:
    """Put the clock of all drivers so much ahead of the machine's, or behind, at once and while they run."""
    _shift[:] = struct.pack("d", shift_s)


def use_shifted_clock() -> None:
    """Let this process read that clock from now on, in all ways in which Python asks for the time of day."""
    time.time = lambda: _time() + _shift_s()
    time.time_ns = lambda: _time_ns() + int(1e9 * _shift_s())
    methods = gc.get_referents(datetime.__dict__)[0]  # a class written in C lets no attribute be set
    methods["now"] = staticmethod(_shifted_now)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(datetime))


def _shifted_now(tz: tzinfo | None = None) -> datetime:
    return _now(tz) + timedelta(seconds=_shift_s())


def _shift_s() -> float:
    return struct.unpack("d", _shift[:])[0]
