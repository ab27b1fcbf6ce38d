"""The Neural GPU, and its Markovian variant."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from ..grammar.neural_gpu import maps_of
from ..grammar.vocabulary import Settings
from .block import Context
from .neural_gpu_image import Reader, build_reader
from .transducer import State, Transducer, transducer


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(State):
    """Column 0 of the last image (batch, length, maps), and the position of the next output."""

    column: Tensor
    place: int = 0


@transducer("neural_gpu")
class NeuralGPU(Transducer[Column]):
    """Every output from its position in the last image alone (Kaiser and Sutskever 2016)."""

    sized: ClassVar[bool] = True

    def __init__(self, *, reader: Reader, maps: int) -> None:
        super().__init__()
        self.reader = reader
        self.outputs = maps

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        """The transducer of `neural_gpu(layers, width, maps, kernel)`."""
        return cls(reader=build_reader(settings, context), maps=maps_of(settings, context.width))

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        source_mask: Tensor | None = None,
        target_mask: Tensor | None = None,
    ) -> Tensor:
        """All outputs at once; of the target only the lengths are used."""
        image, _ = self.reader(source, target, source_mask, target_mask)
        return image[:, 0, : target.shape[1]]

    def begin(self, source: Tensor, source_mask: Tensor | None, lengths: Tensor) -> Column:
        """All that is ever computed."""
        image, _ = self.reader.begin(source, source_mask, lengths)
        return Column(column=image[:, 0])

    def step(self, state: Column, previous: Tensor) -> tuple[Tensor, Column]:
        """The next position, whatever was written before."""
        return state.column[:, state.place], replace(state, place=state.place + 1)


@transducer("markov_neural_gpu")
class MarkovNeuralGPU(Transducer[Column]):
    """Every output from its position in the last image, beside which stands the embedded output before.

    Kaiser and Bengio 2016, section 2.1.
    """

    sized: ClassVar[bool] = True

    def __init__(self, *, reader: Reader, outputs: int) -> None:
        super().__init__()
        self.reader = reader
        self.outputs = outputs

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        """The transducer of `markov_neural_gpu(layers, width, maps, kernel)`."""
        outputs = maps_of(settings, context.width) + context.width
        return cls(reader=build_reader(settings, context), outputs=outputs)

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        source_mask: Tensor | None = None,
        target_mask: Tensor | None = None,
    ) -> Tensor:
        """All outputs at once."""
        image, _ = self.reader(source, target, source_mask, target_mask)
        return torch.cat([image[:, 0, : target.shape[1]], target], -1)

    def begin(self, source: Tensor, source_mask: Tensor | None, lengths: Tensor) -> Column:
        """All that does not depend on the outputs."""
        image, _ = self.reader.begin(source, source_mask, lengths)
        return Column(column=image[:, 0])

    def step(self, state: Column, previous: Tensor) -> tuple[Tensor, Column]:
        """The next position, beside the output before."""
        output = torch.cat([state.column[:, state.place], previous], -1)
        return output, replace(state, place=state.place + 1)
