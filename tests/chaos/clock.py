"""The wall clock of this process's drivers; monotonic time is unaffected."""

import ctypes
import gc
import mmap
import struct
import time
from datetime import datetime, timedelta, tzinfo

_shift = mmap.mmap(-1, 8)  # shared with all processes that are forked from this one
_time, _time_ns, _now = time.time, time.time_ns, datetime.now


def set_clock(shift_s: float) -> None:
    """Shift the wall clock of all drivers relative to the machine's, at once."""
    _shift[:] = struct.pack("d", shift_s)


def use_shifted_clock() -> None:
    """Make all of Python's wall-clock functions in this process use the shifted clock."""
    time.time = lambda: _time() + _shift_s()
    time.time_ns = lambda: _time_ns() + int(1e9 * _shift_s())
    methods = gc.get_referents(datetime.__dict__)[0]  # a class written in C lets no attribute be set
    methods["now"] = staticmethod(_shifted_now)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(datetime))


def _shifted_now(tz: tzinfo | None = None) -> datetime:
    return _now(tz) + timedelta(seconds=_shift_s())


def _shift_s() -> float:
    return struct.unpack("d", _shift[:])[0]
