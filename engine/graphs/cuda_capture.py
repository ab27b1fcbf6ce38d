"""A recording on a GPU: a CUDA graph, as torch's notes on them say (CUDA semantics, "CUDA Graphs")."""

from __future__ import annotations

from collections.abc import Callable

import torch

_WARM_UPS = 3
"""So often work is done before it is recorded: libraries and the autograd engine prepare themselves then."""


class CudaCapture:
    """Records work of one device; what recordings hold meanwhile is of one pool, as they never overlap.

    Random numbers come from the process's generator, which torch registers with each graph: a replay draws
    what comes next, as the work itself would. Warming up and recording leave it where it was.
    """

    def __init__(self, device: torch.device) -> None:
        self._device, self._pool = device, torch.cuda.graph_pool_handle()

    def __call__(self, work: Callable[[], None]) -> Callable[[], None]:
        """What does the work again; RuntimeError for work that cannot be recorded."""
        before = torch.cuda.get_rng_state(self._device)
        try:
            self._warm_up(work)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._pool):
                work()
        finally:
            torch.cuda.set_rng_state(before, self._device)
        return graph.replay

    def _warm_up(self, work: Callable[[], None]) -> None:
        """Do the work on a stream beside the current one, as it is recorded."""
        current, beside = torch.cuda.current_stream(self._device), torch.cuda.Stream(self._device)
        beside.wait_stream(current)
        with torch.cuda.stream(beside):
            for _ in range(_WARM_UPS):
                work()
        current.wait_stream(beside)
