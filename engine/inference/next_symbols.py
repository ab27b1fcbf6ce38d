"""The probabilities of the symbol that follows each of some texts, which grow symbol by symbol."""

from __future__ import annotations

import torch
from torch import Tensor

from ...blocks import Model
from ...blocks.core.block import Block
from ...blocks.core.streaming import StreamState


class NextSymbols:
    """Texts of one length under a causal model, and what may come next.

    A model whose blocks see a bounded past, or keep a state of one size, reads each symbol once; any other
    reads the texts anew at each step.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        blocks = [module for module in model.body.modules() if isinstance(module, Block)]
        self._streams = all(block.context_length is not None or block.state_is_bounded for block in blocks)
        self._state, self._texts = StreamState(), torch.zeros(0)

    @torch.no_grad()
    def read(self, symbols: Tensor) -> Tensor:
        """Read the next symbols of each text (texts, n); the log-probabilities after them (texts, vocab)."""
        if self._streams:
            outputs, self._state = self._model.forward_stream(symbols, self._state)
        else:
            self._texts = torch.cat([self._texts, symbols], 1) if self._texts.numel() else symbols
            outputs = self._model(self._texts)
        return outputs[:, -1].double().log_softmax(-1)

    def keep(self, rows: Tensor) -> None:
        """Go on with these of the texts, by their numbers, possibly several times with one."""
        if self._streams:
            states = (None if each is None else each[rows] for each in self._state.block_states)
            self._state = StreamState(self._state.past_length, tuple(states))
        else:
            self._texts = self._texts[rows]
