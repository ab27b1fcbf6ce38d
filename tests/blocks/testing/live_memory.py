"""Peak memory of a computation: the bytes of live tensors, counted after each operation."""

import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveMemory(TorchDispatchMode):
    """A context that counts what its operations allocate, each storage once, until nothing refers to it.

    `bytes` is the memory of live storages, and `peak` its maximum; earlier storages are not counted. Unlike
    hooks on saved tensors, the context also counts memory that a custom backward pass holds, and memory that
    a view keeps from being freed. Memory that a kernel allocates and frees within one operation is not
    counted.
    """

    def __init__(self, known):
        super().__init__()
        self.bytes = self.peak = 0
        self._alive = {}
        self._before = {each.untyped_storage()._cdata for each in known}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        for each in tree_leaves(found):
            if isinstance(each, torch.Tensor):
                self._note(each.untyped_storage())
        self.peak = max(self.peak, self.bytes)
        return found

    def _note(self, storage):
        key, size = storage._cdata, storage.nbytes()
        if key in self._alive or key in self._before:
            return

        def forget(_gone):
            del self._alive[key]
            self.bytes -= size

        self._alive[key] = weakref.ref(storage, forget)
        self.bytes += size


def step_memory(block, x):
    """Return the bytes that a block's forward pass leaves, without its output, and the peak of a step."""
    with LiveMemory([x, *block.parameters()]) as live:
        y = block(x)
        kept = live.bytes - y.nbytes
        y.square().sum().backward()
    return kept, live.peak


def has_own_backward(module, x):
    """Return whether a module's gradients use a torch.autograd.Function written in Python."""
    pending, seen = [module(x).grad_fn], set()
    while pending:
        node = pending.pop()
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            return True
        if node is not None and node not in seen:
            seen.add(node)
            pending += [before for before, _ in node.next_functions]
    return False
