"""Checks shared by blocks and transducers, whatever they read; each raises AssertionError."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state
from torch.utils.flop_counter import FlopCounterMode


def assert_state_dict_restores(make: Callable[[int], nn.Module], *inputs: Tensor) -> None:
    """Check that a state dict makes another module the same, and a copy is independent."""
    module, other = make(0), make(5)
    expected = module(*inputs)
    assert not (_has_parameters(module) and other(*inputs).equal(expected)), (
        "another seed draws the same weights"
    )
    other.load_state_dict(module.state_dict())
    assert other(*inputs).equal(expected), "the state dict does not restore the outputs"
    copy = deepcopy(module)
    with torch.no_grad():
        for parameter in copy.parameters():
            parameter.add_(1.0)
    assert module(*inputs).equal(expected), "a copy shares weights with the original"


def assert_seed_decides(make: Callable[[int], nn.Module], *inputs: Tensor) -> None:
    """Check that a seed decides the weights, and the global generator is left alone."""
    state = torch.get_rng_state()
    one, same, other = (make(seed)(*inputs) for seed in (3, 3, 4))
    assert torch.get_rng_state().equal(state), "weights were drawn from the global generator"
    assert one.equal(same), "the same seed draws other weights"
    assert not (_has_parameters(make(3)) and one.equal(other)), "another seed draws the same weights"


def run_stacked(
    modules: Sequence[nn.Module], inputs: Sequence[Tensor], masks: Sequence[Tensor | None]
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the outputs of several trials as one batched computation, and their stacked weights.

    Each input has the trials as its first dimension; the masks are the same for all.
    """
    weights, buffers = stack_module_state(list(modules))
    base = deepcopy(modules[0])

    def one(weights: dict[str, Tensor], inputs: tuple[Tensor, ...]) -> Tensor:
        return functional_call(base, (weights, buffers), (*inputs, *masks))

    return torch.vmap(one, randomness="error")(weights, tuple(inputs)), weights


def assert_flops_counted(run: Callable[[], object], *, batch: int, length: int, stated: int) -> None:
    """Check that what a run multiplies and adds for each sequence is stated to one percent."""
    assert_flops_stated(count_flops(run) / batch, length=length, stated=stated)


def count_flops(run: Callable[[], object]) -> int:
    """Return the FLOPs of a run, by torch's counter."""
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


def assert_flops_stated(counted: float, *, length: int, stated: int) -> None:
    """Check that what was counted of a sequence is stated to one percent."""
    message = f"expected {stated} FLOPs as stated at length {length}, got {counted:g}"
    assert math.isclose(counted, stated, rel_tol=0.01), message


def assert_memory_stated(saved: int, *, length: int, stated: int) -> None:
    """Check that what training keeps for the backward pass, in bytes, is stated to one percent."""
    message = f"expected {stated} bytes as stated at length {length}, got {saved}"
    assert math.isclose(saved, stated, rel_tol=0.01, abs_tol=16), message


def assert_dropout_acts(dropping: nn.Module, plain: nn.Module, *inputs: Tensor) -> None:
    """Check that nothing is dropped in evaluation, and in training something.

    Of few numbers the same may be dropped twice in a row, so that several passes are compared.
    """
    assert dropping.eval()(*inputs).equal(plain.train()(*inputs)), "something is dropped in evaluation"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        first, *others = (dropping.train()(*inputs) for _ in range(4))
    assert not all(first.equal(each) for each in others), "nothing is dropped in training"


def _has_parameters(module: nn.Module) -> bool:
    return any(True for _ in module.parameters())
