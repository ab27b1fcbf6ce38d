"""`persistent_conv`: a convolution whose padding is learnt, one padding for the whole model."""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..grammar.vocabulary import Settings, whole, word
from .activation import ACTIVATIONS
from .block import Block, Context, module
from .convolution import Convolution, correlate, hide
from .initial import Drawn, glorot


class Padding(Drawn):
    """The rows that stand before and after every sequence: a matrix for each side that has any."""

    def __init__(self, *, width: int, left: int, right: int) -> None:
        super().__init__()
        self.left = nn.Parameter(torch.empty(left, width)) if left else None
        self.right = nn.Parameter(torch.empty(right, width)) if right else None

    def initialise(self, generator: torch.Generator | None) -> None:
        """Glorot uniform, each side as a map from its rows to the width."""
        for rows in (self.left, self.right):
            if rows is not None:
                glorot(rows, rows.shape[0], rows.shape[1], generator)


@module("persistent_conv")
class PersistentConv(Block):
    """y = act(W ∗ x + b), the padding trainable vectors in place of zeros (active memory in a Transformer).

    What the padding adds does not depend on the data: it is computed once for the whole batch, and laid
    directly before the first and after the last valid position of each sequence.
    """

    def __init__(self, *, width: int, k: int, act: str, causal: bool, padding: Padding) -> None:
        super().__init__()
        self.convolution = Convolution(width=width, k=k, causal=causal)
        self.padding = padding
        self.act = ACTIVATIONS[act]

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        """The block of `persistent_conv(k, act)`; all of one k in a model have the same padding."""
        k, act, width, causal = whole(settings, "k"), word(settings, "act"), context.width, context.causal
        left = k - 1 if causal else (k - 1) // 2
        padding = context.share(
            ("persistent_conv", k), lambda: Padding(width=width, left=left, right=k - 1 - left)
        )
        return cls(width=width, k=k, act=act, causal=causal, padding=padding)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The data's part as in `conv`, and the padding's part beside it."""
        y = self.convolution(hide(x, mask))
        for added in (self._from_left(x.shape[1]), self._from_right(x.shape[1], mask)):
            if added is not None:
                y = y + added
        return self.act(y)

    def _from_left(self, length: int) -> Tensor | None:
        """What the left rows add, (1, length, width): only the first positions see them."""
        rows = self.padding.left
        if rows is None:
            return None
        touched = min(len(rows), length)
        rows = functional.pad(rows, (0, 0, 0, touched - 1)).unsqueeze(0)
        taps = self.convolution.weight[:, : self.convolution.left]
        added = correlate(rows, taps)  # (1, touched, width)
        return functional.pad(added, (0, 0, 0, length - touched))

    def _from_right(self, length: int, mask: Tensor | None) -> Tensor | None:
        """What the right rows add, (1 or batch, length, width): the last valid positions see them."""
        rows = self.padding.right
        if rows is None:
            return None
        touched = min(len(rows), length)
        rows = functional.pad(rows, (0, 0, touched - 1, 0)).unsqueeze(0)
        taps = self.convolution.weight[:, self.convolution.left + 1 :]
        added = correlate(rows, taps)  # (1, touched, width)
        if mask is None:
            return functional.pad(added, (0, 0, length - touched, 0))
        # row 0: too far from the end; row touched: the last valid position, and all that is masked after it
        steps = torch.arange(1, length + 1, device=mask.device) - mask.sum(1, keepdim=True)
        return functional.pad(added[0], (0, 0, 1, 0))[(touched + steps).clamp(0, touched)]
