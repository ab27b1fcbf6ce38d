"""The free memory of a GPU by the library of NVIDIA's driver (NVML), which needs no CUDA context."""

from __future__ import annotations

from contextlib import suppress
from ctypes import CDLL, Structure, byref, c_ulonglong, c_void_p

_LIBRARY = "libnvidia-ml.so.1"


class _Memory(Structure):
    """The `nvmlMemory_t` of nvml.h, in bytes."""

    _fields_ = (("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong))


def free_bytes(uuid: str) -> int | None:
    """Return the bytes of a GPU, or of an instance of one, that no process holds; `uuid` is CUDA's.

    None where the library is not there, or does not say.
    """
    with suppress(OSError, AttributeError):  # no library, or an older one
        library, handle, memory = CDLL(_LIBRARY), c_void_p(), _Memory()
        if library.nvmlInit_v2() == 0:
            try:
                for kind in ("MIG", "GPU"):
                    name = f"{kind}-{uuid}".encode()
                    if library.nvmlDeviceGetHandleByUUID(name, byref(handle)) == 0:
                        told = library.nvmlDeviceGetMemoryInfo(handle, byref(memory)) == 0
                        return memory.free if told else None
            finally:
                library.nvmlShutdown()
    return None
