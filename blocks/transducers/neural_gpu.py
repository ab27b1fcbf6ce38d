"""The Neural GPU, and its Markovian variant."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from ...grammar.vocabulary.neural_gpu import image_maps
from ...grammar.vocabulary.spec import Settings
from ..core.block import Context
from ..core.transducer import State, Transducer, register_transducer
from .neural_gpu_image import ImageEncoder, build_image_encoder


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuralGPUState(State):
    """Column 0 of the last image (batch, length, maps), and the position of the next output."""

    column: Tensor
    position: int = 0


@register_transducer("neural_gpu")
class NeuralGPU(Transducer[NeuralGPUState]):
    """Every output from its position in the last image alone (Kaiser and Sutskever 2016)."""

    depends_on_target_length: ClassVar[bool] = True

    def __init__(self, *, reader: ImageEncoder, maps: int) -> None:
        super().__init__()
        self.reader = reader
        self.output_width = maps

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        """The transducer of `neural_gpu(layers, width, maps, kernel)`."""
        return cls(reader=build_image_encoder(settings, context), maps=image_maps(settings, context.width))

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

    def begin(self, source: Tensor, source_mask: Tensor | None, lengths: Tensor) -> NeuralGPUState:
        """All that is ever computed."""
        image, _ = self.reader.begin(source, source_mask, lengths)
        return NeuralGPUState(column=image[:, 0])

    def step(self, state: NeuralGPUState, previous: Tensor) -> tuple[Tensor, NeuralGPUState]:
        """The next position, whatever was written before."""
        return state.column[:, state.position], replace(state, position=state.position + 1)


@register_transducer("markov_neural_gpu")
class MarkovNeuralGPU(Transducer[NeuralGPUState]):
    """Every output from its position in the last image, beside which stands the embedded output before.

    Kaiser and Bengio 2016, section 2.1.
    """

    depends_on_target_length: ClassVar[bool] = True

    def __init__(self, *, reader: ImageEncoder, output_width: int) -> None:
        super().__init__()
        self.reader = reader
        self.output_width = output_width

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        """The transducer of `markov_neural_gpu(layers, width, maps, kernel)`."""
        output_width = image_maps(settings, context.width) + context.width
        return cls(reader=build_image_encoder(settings, context), output_width=output_width)

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

    def begin(self, source: Tensor, source_mask: Tensor | None, lengths: Tensor) -> NeuralGPUState:
        """All that does not depend on the outputs."""
        image, _ = self.reader.begin(source, source_mask, lengths)
        return NeuralGPUState(column=image[:, 0])

    def step(self, state: NeuralGPUState, previous: Tensor) -> tuple[Tensor, NeuralGPUState]:
        """The next position, beside the output before."""
        output = torch.cat([state.column[:, state.position], previous], -1)
        return output, replace(state, position=state.position + 1)
