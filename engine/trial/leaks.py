"""Whether a trained model sees its future: outputs that move with later inputs, at the length of its task."""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import Tensor, nn

from ...errors import ActivememError
from ..objectives.base import CausalView

MAX_CUTS = 16
"""At so many positions of a sequence, at most, all that follows is replaced; of a short one at each."""

ROUNDING = 1e-9
"""What outputs may move by, as a share of the largest of them: a sum of other zeros, in double precision."""


class LeakError(ActivememError):
    """A model of a causal task that sees later inputs, or blocks that would; the message says where."""


@torch.no_grad()
def check_future_is_hidden(model: nn.Module, view: CausalView) -> None:
    """Raise LeakError if an output of the model moves when later inputs are replaced.

    A copy of the model computes in double precision, so that only what is not seen at all moves nothing. The
    sequence is real, the symbols that replace others are drawn with a fixed seed.
    """
    exact = deepcopy(model).double().eval()
    inputs, length = view.inputs, len(view.inputs)
    generator = torch.Generator().manual_seed(length)
    if length - 1 <= MAX_CUTS:
        cuts = torch.arange(length - 1)
    else:
        cuts = torch.randperm(length - 1, generator=generator)[:MAX_CUTS].sort().values
    known = view.outputs(exact, inputs[None])[0]
    for cut in cuts.tolist():
        shifts = torch.randint(1, view.symbols, (length,), generator=generator)
        others = (inputs - view.first + shifts.to(inputs.device)) % view.symbols + view.first
        changed = torch.where(torch.arange(length, device=inputs.device) > cut, others, inputs)
        moved = _moved(known[: cut + 1], view.outputs(exact, changed[None])[0, : cut + 1])
        if moved is not None:
            raise LeakError(
                f"sees the future: output {moved} moves with the inputs after position {cut} of {length}"
            )


def _moved(known: Tensor, found: Tensor) -> int | None:
    """The first position at which outputs (length, …) differ by more than rounding; None if none does."""
    distance = (known - found).abs().flatten(1).amax(1) if known.dim() > 1 else (known - found).abs()
    wrong = torch.nonzero(~(distance <= ROUNDING * known.abs().max().clamp(min=1.0)))
    return int(wrong[0]) if len(wrong) else None
