"""The attention of a recurrent decoder: scores of the source's vectors for each of its states."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..core.dropout import Dropout
from ..core.initialisation import Linear
from ..core.positional_encoding import sinusoidal_encoding
from ..core.transducer import State
from ..layers.recurrent import RecurrentState


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedSource(State):
    """An encoded source: its input vectors and the encoder's outputs, each (batch, n, width).

    The outputs may have another width. `mask` (batch, n) is true at valid positions; `final_state` is the
    last state of a recurrent encoder.
    """

    inputs: Tensor
    outputs: Tensor
    mask: Tensor | None
    final_state: RecurrentState | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysValues(State):
    """The attended vectors and their keys, each (batch, n, width).

    `padding` (batch, n) is true at padding.
    """

    keys: Tensor
    values: Tensor
    padding: Tensor | None


class Alignment(nn.Module, ABC):
    """Attention to an encoder's outputs, or to its inputs with position vectors appended.

    The position vectors are a timing signal of `positions` channels: they affect the scores alone, and the
    means are of the plain inputs. 0 selects the outputs.
    """

    def __init__(self, *, width: int, positions: int, dropout: float) -> None:
        super().__init__()
        self.positions = positions
        self.keys = Linear(width + positions, width, bias=False)
        self.dropout = Dropout(dropout)

    @abstractmethod
    def scores(self, states: Tensor, keys: Tensor) -> Tensor:
        """Return scores (batch, m, n) of states (batch, m, width) and keys (batch, n, width)."""

    def project_source(self, source: EncodedSource) -> KeysValues:
        """Return the keys of a source, computed once."""
        values = source.inputs if self.positions else source.outputs
        known = values
        if self.positions:
            signal = sinusoidal_encoding(values.shape[1], self.positions, like=values)
            known = torch.cat([values, signal.expand(len(values), -1, -1)], 2)
        padding = None if source.mask is None else ~source.mask
        if padding is not None:
            values = values.masked_fill(padding.unsqueeze(-1), 0.0)
        return KeysValues(keys=self.keys(known), values=values, padding=padding)

    def weights(self, states: Tensor, source: KeysValues) -> Tensor:
        """Return the weights of each state (batch, m, width) on each position, (batch, m, n)."""
        scores = self.scores(states, source.keys)
        if source.padding is not None:
            scores = scores.masked_fill(source.padding[:, None, :], -torch.inf)
        return torch.softmax(scores, -1)

    def forward(self, states: Tensor, source: KeysValues) -> Tensor:
        """Return the means of what is attended to, (batch, m, width)."""
        return self.dropout(self.weights(states, source)) @ source.values


class Luong(Alignment):
    """score = h′ᵀ W m (Luong et al. 2015, equation 8, "general")."""

    def scores(self, states: Tensor, keys: Tensor) -> Tensor:
        return states @ keys.transpose(1, 2)


class Bahdanau(Alignment):
    """score = vᵀ tanh(W_k m + W_q h′) (Bahdanau et al. 2015, section A.1.2)."""

    def __init__(self, *, width: int, positions: int, dropout: float) -> None:
        super().__init__(width=width, positions=positions, dropout=dropout)
        self.queries = Linear(width, width, bias=False)
        self.vector = Linear(width, 1, bias=False)

    def scores(self, states: Tensor, keys: Tensor) -> Tensor:
        pairs = self.queries(states).unsqueeze(2) + keys.unsqueeze(1)  # (batch, m, n, width)
        return self.vector(torch.tanh(pairs)).squeeze(-1)


ALIGNMENTS: dict[str, type[Alignment]] = {"luong": Luong, "bahdanau": Bahdanau}
