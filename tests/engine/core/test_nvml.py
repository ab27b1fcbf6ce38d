"""The interface to NVIDIA's management library, with a stand-in library."""

import shutil
import subprocess
from ctypes import CDLL

import pytest
import torch

from activemem.engine.core import find_gpus, has_gpu
from activemem.engine.core import resources as nvml

LIBRARY = """
#include <string.h>
typedef struct { unsigned long long total, free, used; } nvmlMemory_t;
static int device, opened;
int nvmlInit_v2(void) { opened += !BEGINS; return BEGINS; }
int nvmlShutdown(void) { opened--; return 0; }
int nvmlDeviceGetHandleByUUID(const char *uuid, int **handle) {
    *handle = &device;
    return strcmp(uuid, NAME) ? 6 : 0;
}
int nvmlDeviceGetMemoryInfo(int *handle, nvmlMemory_t *memory) {
    memory->total = 80000000000;
    memory->free = 30000000000;
    memory->used = 50000000000;
    return handle == &device ? TELLS : 2;
}
int opened_by_now(void) { return opened; }
"""


@pytest.fixture(name="library")
def _library(tmp_path, monkeypatch):
    """Return a library with one device and given return values."""

    def library(name, begins, tells):
        source, built = tmp_path / "nvml.c", tmp_path / "nvml.so"
        source.write_text(LIBRARY, encoding="ascii")
        told = [f'-DNAME="{name}"', f"-DBEGINS={begins}", f"-DTELLS={tells}"]
        subprocess.run(["cc", "-shared", "-fPIC", *told, "-o", built, source], check=True)
        monkeypatch.setattr(nvml, "_LIBRARY", str(built))
        return CDLL(str(built))

    return library


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize(
    ("name", "begins", "tells", "expected"),
    [
        ("GPU-1b-2c", 0, 0, 30 * 10**9),
        ("MIG-1b-2c", 0, 0, 30 * 10**9),
        ("GPU-other", 0, 0, None),
        ("GPU-1b-2c", 9, 0, None),
        ("GPU-1b-2c", 0, 4, None),
    ],
    ids=["a GPU", "an instance", "unknown", "no driver", "refused"],
)
def test_the_free_memory_of_a_gpu_is_found_by_its_uuid(library, name, begins, tells, expected):
    found = library(name, begins, tells)
    assert nvml.free_bytes("1b-2c") == expected
    assert found.opened_by_now() == 0


def test_without_the_library_nothing_is_known(monkeypatch):
    monkeypatch.setattr(nvml, "_LIBRARY", "libnothing-of-that-name.so.1")
    assert nvml.free_bytes("1b-2c") is None
    monkeypatch.setattr(nvml, "_LIBRARY", None)  # this program, which has none of the functions
    assert nvml.free_bytes("1b-2c") is None


@pytest.mark.skipif(not has_gpu(), reason="needs a GPU")
def test_the_free_memory_of_a_gpu_is_that_of_cuda():
    for place, gpu in enumerate(find_gpus()):
        free, total = torch.cuda.mem_get_info(place)
        told = nvml.free_bytes(str(torch.cuda.get_device_properties(place).uuid))
        assert told == pytest.approx(free, abs=2**30)  # a context apart
        assert free <= gpu.free + 2**30 <= total + 2**30
