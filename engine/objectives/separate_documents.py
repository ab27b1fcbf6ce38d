"""Loss of text rows in which no token sees another document.

Each row is cut at its document ends, and every piece is computed as a sequence of its own. This is exact for
every block, because masks of padding are exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ...blocks import Model
from .base import on_device, scored_on_device


class Pieces(NamedTuple):
    """Padded pieces of text rows, each from a single document.

    `inputs` (pieces, longest) are padded with 0, and `lengths` (pieces,) are the pieces' lengths. `places`
    (pieces, longest) are the flat indices of the inputs in the rows, and arbitrary ones at padding.
    """

    inputs: Tensor
    lengths: Tensor
    places: Tensor

    @property
    def valid(self) -> Tensor:
        """Return the mask (pieces, longest) of the positions that are not padding."""
        return torch.arange(self.inputs.shape[1]) < self.lengths[:, None]


def iter_pieces(inputs: Tensor, end: int) -> Iterator[Pieces]:
    """Cut rows (batch, length) at the ends of documents.

    Yield groups of pieces of similar lengths. The rows are on the CPU. A piece begins where a row begins, and
    at each mark `end`, which ends a document and begins the next.
    """
    begins = inputs == end
    begins[:, 0] = True
    symbols, starts = inputs.flatten(), begins.flatten().nonzero().squeeze(1)
    lengths = torch.diff(starts, append=torch.tensor([symbols.numel()]))
    for chosen in _group_by_length(lengths.tolist()):
        own = lengths[chosen]
        places = starts[chosen, None] + torch.arange(int(own.max()))
        places = places.clamp(max=symbols.numel() - 1)
        pieces = Pieces(symbols[places], own, places)
        yield pieces._replace(inputs=pieces.inputs.where(pieces.valid, 0))


def _group_by_length(lengths: Sequence[int]) -> list[list[int]]:
    """Group sequences whose lengths differ by less than a factor of two; return their indices."""
    groups: dict[int, list[int]] = {}
    for index, length in enumerate(lengths):
        groups.setdefault((length - 1).bit_length(), []).append(index)
    return list(groups.values())


def nll_of_documents(
    model: Model, inputs: Tensor, targets: Tensor, *, end: int, device: torch.device
) -> Tensor:
    """Return the negative log-likelihood of each target, in nats.

    Each target depends only on its own document. `inputs`, `targets` and the result are (batch, length). The
    rows are on the CPU, the model and the result on `device`.
    """
    nats: list[Tensor] = []
    order: list[Tensor] = []
    for pieces in iter_pieces(inputs, end):
        wanted, places = scored_on_device(targets.flatten()[pieces.places], pieces.valid, device)
        rows, lengths = on_device(pieces.inputs, device), on_device(pieces.lengths, device)
        nats.append(model.nll_at(rows, wanted, places, lengths))
        order.append(pieces.places[pieces.valid])
    back = torch.cat(order).argsort()
    return torch.cat(nats)[on_device(back, device)].view(inputs.shape)
