"""How a GPU is asked to record: in which order, and what is left behind where that fails."""

import gc
import sys
import warnings
from contextlib import contextmanager
from types import SimpleNamespace
from weakref import ref

import pytest
import torch

from activemem.engine.graphs import cuda_capture
from activemem.engine.graphs.cuda_capture import CudaCapture
from activemem.engine.graphs.recorded_work import BrokenRecordingError


class Numbers:
    """A generator of a GPU, of whose state others can take the place."""

    def __init__(self, device="cuda"):
        self.device, self.state = device, [0]

    def get_state(self):
        return self.state[0]

    def set_state(self, number):
        self.state[0] = number

    def graphsafe_set_state(self, other):
        self.state = other.state

    def draw(self):
        self.state[0] += 1


class Gpu:
    """What is asked of torch.cuda, and what a graph of it would do."""

    def __init__(self):
        self.told, self.process, self.handles, self.waiting = [], Numbers(), 0, 0
        self.current, self.warned, self.breaks = "current", False, True
        self.streams, self.underway, self.users, self.leaves_behind = [], [], [], True
        self.refuses = False
        self.default_generators = [self.process]

    def patched(self, monkeypatch):
        for name in dir(self):
            if not name.startswith("_") and hasattr(torch.cuda, name):
                monkeypatch.setattr(torch.cuda, name, getattr(self, name))
        monkeypatch.setattr(torch._C, "_cuda_endAllocateToPool", self._end, raising=False)
        monkeypatch.setattr(torch._C, "_cuda_releasePool", self._release, raising=False)
        monkeypatch.setattr(cuda_capture, "Generator", Numbers)
        return self

    def _end(self, device, pool):
        if (device, pool) not in self.underway:
            raise RuntimeError("endAllocatePool: not currently recording to mempool_id")
        self.underway.remove((device, pool))

    def _release(self, device, pool):
        self.users.remove((device, pool))

    def current_device(self):
        return 0

    def current_stream(self, _device=None):
        return self._stream(self.current)

    def Stream(self, device):  # noqa: N802 -- torch's name
        self.streams.append(device)
        return self._stream("beside" if len(self.streams) % 2 else "recording")

    def _stream(self, name):
        def wait_stream(other):
            self.told.append((name, "waits for", other.name))

        return SimpleNamespace(name=name, wait_stream=wait_stream)

    @contextmanager
    def stream(self, stream):
        before, self.current = self.current, stream.name
        try:
            yield
        finally:
            self.current = before

    def get_sync_debug_mode(self):
        return self.waiting

    def set_sync_debug_mode(self, mode):
        self.waiting = mode
        if not self.warned:  # once a process, as torch does
            self.warned = True
            warnings.warn("Synchronization debug mode is a prototype feature", UserWarning, stacklevel=1)

    def graph_pool_handle(self):
        self.handles += 1
        return self.handles

    def CUDAGraph(self):  # noqa: N802 -- torch's name
        return Graph()

    @contextmanager
    def graph(self, graph, pool, stream):
        graph.given_pool = pool
        self.told.append(("record", tuple(graph.generators)))
        self.current = stream.name
        self.underway.append((0, pool))
        self.users.append((0, pool))
        if self.refuses:
            raise RuntimeError("operation not permitted")
        try:
            yield
        finally:
            breaks = self.breaks and sys.exc_info()[0] is not None
            if not breaks or not self.leaves_behind:
                self._end(0, pool)
            if breaks:  # torch then stays on the stream
                raise RuntimeError("operation failed due to a previous error during capture")
            self.current, graph.ended = "current", True


class Graph:
    def __init__(self):
        self.generators, self.ended = [], False

    def pool(self):
        if not self.ended:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return self.given_pool

    def register_generator_state(self, generator):
        self.generators.append(generator)

    def replay(self):
        """Nothing."""

    def reset(self):
        """Nothing, as it has not ended."""


@pytest.fixture
def gpu(monkeypatch):
    cuda_capture._shared_on.cache_clear()
    yield Gpu().patched(monkeypatch)
    cuda_capture._shared_on.cache_clear()


def test_work_is_done_beside_the_stream_then_without_waiting_then_recorded(gpu):
    own, seen = Numbers(), []

    def work():
        own.draw(), gpu.process.draw()
        seen.append((gpu.current, gpu.waiting))

    replay = CudaCapture(torch.device("cuda"))(work, [own])
    assert seen == [("beside", 0), ("beside", 0), ("beside", "error"), ("recording", 0)]
    waits = [("beside", "waits for", "current"), ("current", "waits for", "beside")]
    assert gpu.told == [*waits, ("record", (own,))]
    assert (own.get_state(), gpu.process.get_state(), gpu.current) == (0, 0, "current")
    assert replay() is None


def test_all_that_is_recorded_of_a_device_shares_two_streams_and_a_pool(gpu):
    first, second = CudaCapture(torch.device("cuda")), CudaCapture(torch.device("cuda", 0))
    graphs = [capture(lambda: None).__self__ for capture in (first, second, first)]
    assert gpu.streams == [0, 0]
    assert len({graph.pool() for graph in graphs}) == 1
    CudaCapture(torch.device("cuda", 1))(lambda: None)
    assert gpu.streams == [0, 0, 1, 1]


@pytest.mark.parametrize("enabled", [True, False])
def test_no_garbage_is_collected_while_work_is_recorded(gpu, enabled):
    """A graph that nobody needs any more is destroyed before, else by chance amid it."""
    capture, seen = CudaCapture(torch.device("cuda")), []
    owner = SimpleNamespace(replay=capture(lambda: None))
    owner.owner, graph = owner, ref(owner.replay.__self__)
    del owner

    def work():
        if gpu.current == "recording":
            seen.append((gc.isenabled(), graph()))
            if len(seen) == 2:
                raise torch.OutOfMemoryError("CUDA out of memory.")

    gpu.breaks, was_enabled = False, gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        capture(work)
        with pytest.raises(torch.OutOfMemoryError):
            capture(work)
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()
    assert seen == [(False, None)] * 2


def test_work_that_waits_leaves_all_as_it_was_and_other_work_can_be_recorded(gpu):
    capture, own = CudaCapture(torch.device("cuda")), Numbers()

    def work():
        own.draw()
        if gpu.waiting:
            raise RuntimeError("called a synchronizing CUDA operation")

    state = own.state
    with pytest.raises(RuntimeError, match="synchronizing") as raised:
        capture(work, [own])
    assert not isinstance(raised.value, BrokenRecordingError)
    assert (own.state is state, own.get_state(), gpu.waiting, gpu.current) == (True, 0, 0, "current")
    assert gpu.told == [("beside", "waits for", "current"), ("current", "waits for", "beside")]


def test_a_recording_that_broke_says_why_and_leaves_generators_that_are_not_recorded(gpu):
    own = Numbers()
    own.set_state(7)
    states = own.state, gpu.process.state

    def work():
        own.draw()
        if gpu.current == "recording":
            raise RuntimeError("out of room")

    with pytest.raises(BrokenRecordingError, match="out of room"):
        CudaCapture(torch.device("cuda"))(work, [own])
    assert own.state is not states[0] and gpu.process.state is not states[1]
    assert (own.get_state(), gpu.process.get_state(), gpu.current) == (7, 0, "current")


@pytest.mark.parametrize(("leaves_behind", "left"), [(True, 0), (False, 1)], ids=["under way", "ended"])
def test_a_recording_that_broke_is_under_way_no_more_and_its_pool_is_held_by_it_once_at_most(
    gpu, leaves_behind, left
):
    def work():
        if gpu.current == "recording":
            raise RuntimeError("out of room")

    gpu.leaves_behind, capture = leaves_behind, CudaCapture(torch.device("cuda"))
    kept = capture(lambda: None)
    with pytest.raises(BrokenRecordingError, match="out of room"):
        capture(work)
    assert (gpu.underway, len(gpu.users)) == ([], 1 + left)  # that of `kept`, and what torch leaves or counts
    assert capture(lambda: None).__self__.pool() != kept.__self__.pool()


def test_a_recording_that_does_not_begin_is_under_way_no_more(gpu):
    capture, gpu.refuses = CudaCapture(torch.device("cuda")), True
    with pytest.raises(BrokenRecordingError, match="not permitted"):
        capture(lambda: None)
    assert (gpu.underway, len(gpu.users)) == ([], 1)


def test_without_a_way_to_end_it_a_recording_that_broke_says_why(gpu, monkeypatch):
    monkeypatch.delattr(torch._C, "_cuda_endAllocateToPool")
    gpu.refuses = True
    with pytest.raises(BrokenRecordingError, match="not permitted"):
        CudaCapture(torch.device("cuda"))(lambda: None)


def test_work_that_has_no_memory_to_be_recorded_in_leaves_all_as_it_was(gpu):
    capture, own, gpu.breaks = CudaCapture(torch.device("cuda")), Numbers(), False

    def work():
        own.draw()
        if gpu.current == "recording":
            raise torch.OutOfMemoryError("CUDA out of memory.")

    state = own.state
    with pytest.raises(torch.OutOfMemoryError):
        capture(work, [own])
    assert (own.state is state, own.get_state(), gpu.current) == (True, 0, "current")
    assert capture(lambda: None)() is None


def test_graphs_share_a_pool_as_long_as_any_is_alive(gpu):
    capture = CudaCapture(torch.device("cuda"))
    first, second = (capture(lambda: None) for _ in range(2))
    assert first.__self__.pool() == second.__self__.pool()
    old = first.__self__.pool()
    del first, second
    gc.collect()
    assert capture(lambda: None).__self__.pool() != old


def test_that_torch_does_not_see_all_waiting_is_told_to_nobody(gpu):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert CudaCapture(torch.device("cuda"))(lambda: None)() is None
    assert gpu.waiting == 0
