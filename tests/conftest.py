"""No process outlives the test session that started it."""

import gc
import os
import signal
import sys
import uuid
from pathlib import Path

import psutil
import pytest

from activemem import plugins
from activemem.engine.core.resources import has_gpu

from .golden import GoldenTexts
from .registry_entries import restore_entries

SESSION_VARIABLE = "PYTEST_SESSION_OF_ACTIVEMEM"
PATIENCE_S = 300
IN_MEMORY = Path("/dev/shm")
ROOM_BYTES = 4 << 30  # a run fills a tenth of that
GPU_IS_HERE = has_gpu()
if GPU_IS_HERE:
    import torch
    from torch.utils._triton import has_triton

    torch.cuda._cached_device_count = torch.cuda.device_count()  # else that of a test that hides them

for variable in ("OMP_NUM_THREADS", "POLARS_MAX_THREADS"):  # several processes of tests share the cores
    os.environ.setdefault(variable, "1")
if IN_MEMORY.is_mount() and os.access(IN_MEMORY, os.W_OK):  # temporary folders are there, if there is room
    found = os.statvfs(IN_MEMORY)  # nothing waits for a disk then; that stores flush is tested step by step
    if found.f_bavail * found.f_frsize > ROOM_BYTES and not found.f_flag & os.ST_NOEXEC:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))
for variable in [name for name in os.environ if name.startswith("ACTIVEMEM_")]:
    if not variable.startswith("ACTIVEMEM_TEST_"):  # whoever runs the tests may have settings of their own
        del os.environ[variable]
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what one program of the tests compiles, the next finds,
sys.dont_write_bytecode = False  # and the next run of the tests
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as a shell has it for what it runs in the background,
    signal.signal(signal.SIGINT, signal.default_int_handler)  # and programs for what they start


@pytest.fixture(autouse=True, scope="session")
def _cache_of_the_session(tmp_path_factory):
    """Use a separate cache for the session instead of the user's."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = tmp_path_factory.getbasetemp().parent / "cache"
    else:
        folder = tmp_path_factory.mktemp("cache")
    os.environ["XDG_CACHE_HOME"] = str(folder)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the tests that need a GPU, for selection."""
    for item in items:
        if waits_for_a_gpu(item):
            item.add_marker("gpu")


def waits_for_a_gpu(item):
    """Return whether a test is skipped without a GPU, by its skip reason."""
    reasons = [mark.kwargs.get("reason", "") for mark in item.iter_markers("skipif")]
    return any("needs a GPU" in reason for reason in reasons)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Freeze the objects from imports and collection, to speed up garbage collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(10_000, 20, 20)


@pytest.fixture(autouse=True, scope="module")
def _garbage_is_that_of_a_module():
    """Collect before each module, and freeze what is left: tests of short memory collect many times."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _no_process_is_left():
    """Mark child processes by an inherited variable, and report those that are left."""
    mark = uuid.uuid4().hex
    os.environ[SESSION_VARIABLE] = mark
    yield
    left = [process for process in psutil.process_iter() if _is_left(process, mark)]
    _, left = psutil.wait_procs(left, timeout=PATIENCE_S)
    commands = [" ".join(process.cmdline())[:200] for process in left if process.is_running()]
    for process in left:
        process.kill()
    assert not commands, "expected no process of the tests to be left, found:\n" + "\n".join(commands)


@pytest.fixture(autouse=True)
def _a_gpu_is_for_tests_of_it(request):
    """Make tests that do not need a GPU, and their processes, compute on the CPU.

    Torch asks once a process whether Triton has a GPU: those that have one have it asked anew.
    """
    with pytest.MonkeyPatch.context() as patch:
        if GPU_IS_HERE and not waits_for_a_gpu(request.node):
            patch.setattr("torch.cuda.is_available", lambda: False)
            patch.setenv("CUDA_VISIBLE_DEVICES", "")
        elif GPU_IS_HERE:
            has_triton.cache_clear()
        yield


@pytest.fixture
def golden(request):
    """Return the golden texts of the test; TMP_PATH and ROOT are its folder and that of the code."""
    folder = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    texts = GoldenTexts(request.path.with_suffix(".txt"), request.node.name, folder and str(folder))
    yield texts
    assert not texts.added, "these golden texts are new: read them, then run this again"


@pytest.fixture(autouse=True)
def _plug_ins_go_with_their_test():
    """Unload plug-ins after each test, so that the next test can load its own."""
    before = {file.path for file in plugins.loaded_files()}
    yield
    for path in {file.path for file in plugins.loaded_files()} - before:
        plugins.unload_plugin(path)


@pytest.fixture(autouse=True)
def _entries_go_with_their_test():
    """Restore registry entries after each test."""
    yield
    restore_entries()


def _is_left(process, mark):
    """Return whether a process would outlive this session: an orphan, or a part of Ray."""
    try:
        if process.environ().get(SESSION_VARIABLE) != mark:
            return False
        ours = any(parent.pid == os.getpid() for parent in process.parents())
        return not ours or process.name() in {"raylet", "gcs_server"}
    except psutil.Error:  # it has ended meanwhile, or is another user's
        return False
