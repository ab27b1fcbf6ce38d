"""The Neural GPU, its Markovian variant, and what all of the family have in common."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from ...grammar.vocabulary.neural_gpu import image_maps
from ...grammar.vocabulary.spec import Settings
from ..core.block import Context
from ..core.transducer import State, StateT, Transducer, register_transducer
from .neural_gpu_image import ImageEncoder, build_image_encoder


class ImageTransducer(Transducer[StateT]):
    """A transducer whose outputs come from an image of the source, as large as their number asks for."""

    def __init__(self, *, reader: ImageEncoder, output_width: int) -> None:
        super().__init__()
        self.reader = reader
        self.output_width = output_width

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        source_mask: Tensor | None = None,
        target_mask: Tensor | None = None,
    ) -> Tensor:
        """Return all outputs, from the image for targets of these lengths."""
        image, mask = self.reader(source, target, source_mask, target_mask)
        return self.write(image, mask, target)

    def begin(self, source: Tensor, source_mask: Tensor | None, lengths: Tensor) -> StateT:
        return self.first_state(*self.reader.begin(source, source_mask, lengths))

    @abstractmethod
    def write(self, image: Tensor, mask: Tensor | None, target: Tensor) -> Tensor:
        """Return all outputs (batch, m, outputs); `mask` (batch, 1, length, 1) belongs to the image."""

    @abstractmethod
    def first_state(self, image: Tensor, mask: Tensor | None) -> StateT:
        """Return the state before the first output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuralGPUState(State):
    """Column 0 of the last image (batch, length, maps), and the position of the next output."""

    column: Tensor
    position: int = 0


@register_transducer("neural_gpu")
class NeuralGPU(ImageTransducer[NeuralGPUState]):
    """Every output from its position in the last image alone (Kaiser and Sutskever 2016)."""

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        maps = image_maps(settings, context.width)
        return cls(reader=build_image_encoder(settings, context), output_width=maps)

    def write(self, image: Tensor, mask: Tensor | None, target: Tensor) -> Tensor:
        """Read the outputs from the image; of the target only the length is used."""
        return image[:, 0, : target.shape[1]]

    def first_state(self, image: Tensor, mask: Tensor | None) -> NeuralGPUState:
        return NeuralGPUState(column=image[:, 0])

    def step(self, state: NeuralGPUState, previous: Tensor) -> tuple[Tensor, NeuralGPUState]:
        return state.column[:, state.position], replace(state, position=state.position + 1)


@register_transducer("markov_neural_gpu")
class MarkovNeuralGPU(ImageTransducer[NeuralGPUState]):
    """Every output from its position in the last image, beside which stands the embedded output before.

    Kaiser and Bengio 2016, section 2.1.
    """

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        output_width = image_maps(settings, context.width) + context.width
        return cls(reader=build_image_encoder(settings, context), output_width=output_width)

    def write(self, image: Tensor, mask: Tensor | None, target: Tensor) -> Tensor:
        return torch.cat([image[:, 0, : target.shape[1]], target], -1)

    def first_state(self, image: Tensor, mask: Tensor | None) -> NeuralGPUState:
        return NeuralGPUState(column=image[:, 0])

    def step(self, state: NeuralGPUState, previous: Tensor) -> tuple[Tensor, NeuralGPUState]:
        output = torch.cat([state.column[:, state.position], previous], -1)
        return output, replace(state, position=state.position + 1)
