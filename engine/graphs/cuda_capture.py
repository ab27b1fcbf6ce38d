"""A recording on a GPU: a CUDA graph, as torch's notes on them say (CUDA semantics, "CUDA Graphs")."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from weakref import WeakSet

import torch
from torch import Generator

from .recorded_work import BrokenRecordingError, Work

_WARM_UPS = 3
"""So often work is done before it is recorded: libraries and the autograd engine prepare themselves then."""


class CudaCapture:
    """Records work of one device; no garbage is collected meanwhile, as a graph that is destroyed breaks it.

    A replay draws what comes next of the generators, as the work itself would: of the process's, which torch
    registers with each graph, and of those that the work has of its own.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def __call__(self, work: Work, generators: Sequence[Generator] = ()) -> Work:
        """What does the work again.

        Raises RuntimeError for work that cannot be recorded, as it waits for the GPU or as there is no memory
        for it, and BrokenRecordingError where torch cannot end the recording, nor begin any from then on.
        """
        with self._as_before(generators):
            self._warm_up(work)
            graph = torch.cuda.CUDAGraph()
            for generator in generators:
                graph.register_generator_state(generator)
            with _without_garbage():
                self._capture(work, graph)
        self._shared.alive.add(graph)
        return graph.replay

    @property
    def _shared(self) -> _Shared:
        """What it shares with others of its device, of which no GPU is asked before anything is recorded."""
        place = self._device.index
        return _shared_on(torch.cuda.current_device() if place is None else place)

    def _capture(self, work: Work, graph: torch.cuda.CUDAGraph) -> None:
        """Record the work, or raise what `__call__` does."""
        shared, begun = self._shared, False
        if not shared.alive:  # torch has no pool any more whose graphs are gone
            shared.pool = torch.cuda.graph_pool_handle()
        try:
            with torch.cuda.graph(graph, pool=shared.pool, stream=shared.recording):
                begun = True
                work()
        except RuntimeError as error:
            if _has_ended(graph):
                raise
            shared.end_broken(graph, begun=begun)
            first = error.__context__ or error  # that the recording then cannot end tells nothing
            raise BrokenRecordingError(*first.args) from error

    @contextmanager
    def _as_before(self, generators: Sequence[Generator]) -> Iterator[None]:
        """A context that leaves the current stream and all generators as they were, whatever is raised.

        A capture that fails may leave them as ones that are captured: they then have other states of torch's.
        """
        drawn_from = (torch.cuda.default_generators[torch.cuda.current_device()], *generators)
        states = [each.get_state() for each in drawn_from]
        try:
            with torch.cuda.stream(torch.cuda.current_stream(self._device)):
                yield
        except BrokenRecordingError:
            for each in drawn_from:
                each.graphsafe_set_state(Generator(self._device))
            raise
        finally:
            for each, state in zip(drawn_from, states, strict=True):
                each.set_state(state)

    def _warm_up(self, work: Work) -> None:
        """Do the work on a stream beside the current one, as it is recorded; at last it must not wait.

        Whatever is raised, the current one goes on behind it: what the work reads may then be freed.
        """
        current, beside = torch.cuda.current_stream(self._device), self._shared.beside
        beside.wait_stream(current)
        try:
            with torch.cuda.stream(beside):
                for _ in range(_WARM_UPS - 1):
                    work()
                with _waiting_is_an_error():
                    work()
        finally:
            current.wait_stream(beside)


class _Shared:
    """What all recordings of a device in this process share: a pool, as they never overlap, and two streams.

    Torch keeps 32 MiB for cuBLAS with each stream that has ever multiplied, so there are no more. What it
    keeps with the one that is recorded is of the pool, and may go with any of its graphs: nothing else is
    done there.
    """

    def __init__(self, device: int) -> None:
        self.beside, self.recording = torch.cuda.Stream(device), torch.cuda.Stream(device)
        self.pool, self.alive = torch.cuda.graph_pool_handle(), WeakSet[torch.cuda.CUDAGraph]()
        self._broken = list[torch.cuda.CUDAGraph]()

    def end_broken(self, graph: torch.cuda.CUDAGraph, *, begun: bool) -> None:
        """Have the allocator go on as before a recording that torch could not end.

        Some versions of torch leave it behind as one that is under way: no memory can be freed then in this
        process, and all of the pool is held. Others have ended it, where the allocator refuses to again, and
        `reset` undoes what they know of. Where it has not `begun`, they may count the pool's users otherwise.
        The graph stays: of memory for copies to the GPU torch may go on to ask it.
        """
        self._broken.append(graph)
        self.alive.clear()  # the next recording has another pool
        with suppress(ImportError, RuntimeError):
            from torch._C import (  # noqa: PLC0415 -- which not all versions have
                _cuda_endAllocateToPool,
                _cuda_releasePool,
            )

            graph.reset()
            _cuda_endAllocateToPool(torch.cuda.current_device(), self.pool)
            if begun:
                _cuda_releasePool(torch.cuda.current_device(), self.pool)


_shared_on = cache(_Shared)


@contextmanager
def _without_garbage() -> Iterator[None]:
    """A context in which no garbage is collected, as all is before."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        gc.collect()
        yield
    finally:
        if was_enabled:
            gc.enable()


def _has_ended(graph: torch.cuda.CUDAGraph) -> bool:
    """Whether torch has ended a recording, of all of the work or of a part; it tells the pool only then."""
    with suppress(RuntimeError):
        graph.pool()
        return True
    return False


@contextmanager
def _waiting_is_an_error() -> Iterator[None]:
    """A context in which RuntimeError is raised where the GPU would be waited for, as far as torch sees it.

    That it does not see all, it warns of once a process: recording finds the rest.
    """
    before = torch.cuda.get_sync_debug_mode()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            torch.cuda.set_sync_debug_mode("error")
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)
