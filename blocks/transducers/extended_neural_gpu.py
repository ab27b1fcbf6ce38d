"""The Extended Neural GPU: an active memory that decodes, and reads its outputs from a tape."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional

from ...grammar.vocabulary.neural_gpu import image_maps
from ...grammar.vocabulary.spec import Settings, as_word
from ..core.block import Context
from ..core.initialisation import Linear
from ..core.transducer import State, register_transducer
from .neural_gpu import ImageTransducer
from .neural_gpu_image import CGRUStack, ImageCGRU, ImageEncoder, build_cgru_stack, build_image_encoder


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendedNeuralGPUState(State):
    """The decoder's image with its mask, what the tape adds to each unit, the position of the next output."""

    image: Tensor  # (batch, width, length, maps)
    mask: Tensor | None  # (batch, 1, length, 1)
    tape_contributions: tuple[Tensor, ...]  # each (batch, width, length, 3 * maps)
    position: int = 0


@register_transducer("extended_neural_gpu")
class ExtendedNeuralGPU(ImageTransducer[ExtendedNeuralGPUState]):
    """A Neural GPU whose second stack continues from the last image, one step for each output.

    The convolutions of the tape are linear: an output adds the same around its position at every later
    step, so this is computed once, when it is written. Position 0 of the target, the start symbol, is not
    written (Kaiser and Bengio 2016, section 2.2).
    """

    def __init__(
        self, *, reader: ImageEncoder, decoder: CGRUStack, inputs: int, maps: int, everywhere: bool
    ) -> None:
        super().__init__(reader=reader, output_width=maps)
        self.decoder = decoder
        self.written = None if inputs == maps else Linear(inputs, maps, bias=False)
        self.everywhere = everywhere

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        return cls(
            reader=build_image_encoder(settings, context),
            decoder=build_cgru_stack(settings, context, taped=True),
            inputs=context.width,
            maps=image_maps(settings, context.width),
            everywhere=as_word(settings, "tape") == "all",
        )

    def write(self, image: Tensor, mask: Tensor | None, target: Tensor) -> Tensor:
        """Write one step after another; what the targets add is computed at once."""
        additions = [each.unbind(1) for each in self._contributions(target[:, 1:])]
        tape_contributions = self._empty_tape(image)
        outputs: list[Tensor] = []
        for place in range(target.shape[1]):
            if place > 0:
                added = [each[place - 1] for each in additions]
                tape_contributions = self._extend_tape(tape_contributions, added, place - 1)
            image = self.decoder(image, mask, tape_contributions)
            outputs.append(image[:, 0, place])
        return torch.stack(outputs, 1)

    def first_state(self, image: Tensor, mask: Tensor | None) -> ExtendedNeuralGPUState:
        return ExtendedNeuralGPUState(image=image, mask=mask, tape_contributions=self._empty_tape(image))

    def step(self, state: ExtendedNeuralGPUState, previous: Tensor) -> tuple[Tensor, ExtendedNeuralGPUState]:
        tape_contributions, place = state.tape_contributions, state.position
        if place > 0:
            added = self._contributions(previous)
            tape_contributions = self._extend_tape(tape_contributions, added, place - 1)
        image = self.decoder(state.image, state.mask, tape_contributions)
        output = image[:, 0, place]
        return output, replace(state, image=image, tape_contributions=tape_contributions, position=place + 1)

    @property
    def _units(self) -> list[ImageCGRU]:
        return [unit for unit in self.decoder.units if isinstance(unit, ImageCGRU)]

    def _contributions(self, outputs: Tensor) -> list[Tensor]:
        """Return what embedded outputs (…, width) add to each unit, (…, columns, kernel, 3 * maps)."""
        written = outputs if self.written is None else self.written(outputs)
        columns = self.reader.width
        return [unit.tape_contribution(written, columns, everywhere=self.everywhere) for unit in self._units]

    def _empty_tape(self, image: Tensor) -> tuple[Tensor, ...]:
        nothing = image.new_zeros(*image.shape[:3], 3 * image.shape[3])
        return tuple(nothing for _ in self._units)

    def _extend_tape(
        self, tape_contributions: tuple[Tensor, ...], new_contributions: list[Tensor], place: int
    ) -> tuple[Tensor, ...]:
        """Return what the tape adds to each unit, with another output at that position."""
        found: list[Tensor] = []
        for before, added, unit in zip(tape_contributions, new_contributions, self._units, strict=True):
            columns, kernel = added.shape[1:3]
            first = place - unit.after
            # padding by a negative number cuts off what would stand outside of the image
            sides = (first, before.shape[2] - first - kernel, 0, before.shape[1] - columns)
            found.append(before + functional.pad(added, (0, 0, *sides)))
        return tuple(found)
