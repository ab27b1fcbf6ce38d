"""Causality check: no output of a trained model may depend on later inputs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy

import torch
from torch import Tensor, nn

from ...blocks.reach_check import ROUNDING
from ...errors import ActivememError
from ..objectives.base import CausalView
from .memory_retries import free_memory, may_be_out_of_memory

MAX_CUTS = 16
"""The maximum number of positions after which inputs are replaced; a short sequence is tested at each
position."""

_CPU = torch.device("cpu")

_log = logging.getLogger(__name__)


class LeakError(ActivememError):
    """A causal task's model or block that sees later inputs; the message says where."""


@torch.no_grad()
def check_future_is_hidden(
    model: nn.Module, view: CausalView, with_room: Callable[[], AbstractContextManager[None]] = nullcontext
) -> None:
    """Raise LeakError if replacing later inputs changes an output of the model.

    A copy of the model computes in double precision, so an output stays the same only if the model does not
    see the replaced inputs. The sequence is real; a fixed seed draws the replacements. The copy takes twice
    the memory of the weights. If a GPU lacks it, the check runs in the context `with_room`, and finally on
    the CPU.
    """
    here = view.inputs.device
    if _is_checked(here, model, view):
        return
    with with_room():
        free_memory()
        if _is_checked(here, model, view):
            return
    _log.warning("whether the model sees its future is computed on the CPU: memory is short for its copy")
    _check_on(_CPU, model, view)


def _is_checked(device: torch.device, model: nn.Module, view: CausalView) -> bool:
    try:
        _check_on(device, model, view)
    except RuntimeError as error:
        if not may_be_out_of_memory(error):
            raise
        return False
    return True


def _check_on(device: torch.device, model: nn.Module, view: CausalView) -> None:
    exact, inputs = _copied(model, device).double().eval(), view.inputs.to(device)
    length = len(inputs)
    generator = torch.Generator().manual_seed(length)
    if length - 1 <= MAX_CUTS:
        cuts = torch.arange(length - 1)
    else:
        cuts = torch.randperm(length - 1, generator=generator)[:MAX_CUTS].sort().values
    known = view.outputs(exact, inputs[None])[0]
    for cut in cuts.tolist():
        shifts = torch.randint(1, view.symbols, (length,), generator=generator)
        others = (inputs - view.first + shifts.to(device)) % view.symbols + view.first
        changed = torch.where(torch.arange(length, device=device) > cut, others, inputs)
        moved = _moved(known[: cut + 1], view.outputs(exact, changed[None])[0, : cut + 1])
        if moved is not None:
            raise LeakError(
                f"sees the future: output {moved} moves with the inputs after position {cut} of {length}"
            )


def _copied(model: nn.Module, device: torch.device) -> nn.Module:
    """Return a copy of a model, created directly on a device."""
    known: dict[int, object] = {id(each): each.to(device, copy=True) for each in model.buffers()}
    for weight in model.parameters():
        known[id(weight)] = nn.Parameter(weight.to(device, copy=True), weight.requires_grad)
    return deepcopy(model, known)


def _moved(known: Tensor, found: Tensor) -> int | None:
    """Return the first position at which outputs (length, …) differ by more than rounding, or None."""
    distance = (known - found).abs().flatten(1).amax(1) if known.dim() > 1 else (known - found).abs()
    wrong = torch.nonzero(~(distance <= ROUNDING * known.abs().max().clamp(min=1.0)))
    return int(wrong[0]) if len(wrong) else None
