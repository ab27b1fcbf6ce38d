"""The Extended Neural GPU: an active memory that decodes, and reads its outputs from a tape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor
from torch.nn import functional

from ..grammar.neural_gpu import maps_of
from ..grammar.vocabulary import Settings, word
from .block import Context
from .initial import Linear
from .neural_gpu_image import ImageCGRU, Reader, Stack, build_reader, build_stack
from .transducer import State, Transducer, transducer


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding(State):
    """The decoder's image with its mask, what the tape adds to each unit, the position of the next output."""

    image: Tensor  # (batch, width, length, maps)
    mask: Tensor | None  # (batch, 1, length, 1)
    told: tuple[Tensor, ...]  # each (batch, width, length, 3 * maps)
    place: int = 0


@transducer("extended_neural_gpu")
class ExtendedNeuralGPU(Transducer[Decoding]):
    """A second stack goes on with the last image, one step an output (Kaiser and Bengio 2016, section 2.2).

    The convolutions of the tape are linear: an output adds the same around its position at every later step,
    so this is computed once, when it is written. What stands at position 0 of the target, the start symbol,
    is not written.
    """

    sized: ClassVar[bool] = True

    def __init__(self, *, reader: Reader, decoder: Stack, inputs: int, maps: int, everywhere: bool) -> None:
        super().__init__()
        self.reader = reader
        self.decoder = decoder
        self.written = None if inputs == maps else Linear(inputs, maps, bias=False)
        self.everywhere = everywhere
        self.outputs = maps

    @classmethod
    def build(cls, settings: Settings, context: Context) -> Self:
        """The transducer of `extended_neural_gpu(layers, width, maps, kernel, tape)`."""
        return cls(
            reader=build_reader(settings, context),
            decoder=build_stack(settings, context, taped=True),
            inputs=context.width,
            maps=maps_of(settings, context.width),
            everywhere=word(settings, "tape") == "all",
        )

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        source_mask: Tensor | None = None,
        target_mask: Tensor | None = None,
    ) -> Tensor:
        """All outputs, one step after another; what the targets add is computed at once."""
        image, mask = self.reader(source, target, source_mask, target_mask)
        additions = [each.unbind(1) for each in self._additions(target[:, 1:])]
        told = self._untold(image)
        outputs: list[Tensor] = []
        for place in range(target.shape[1]):
            if place > 0:
                told = self._write(told, [each[place - 1] for each in additions], place - 1)
            image = self.decoder(image, mask, told)
            outputs.append(image[:, 0, place])
        return torch.stack(outputs, 1)

    def begin(self, source: Tensor, source_mask: Tensor | None, lengths: Tensor) -> Decoding:
        """The last image of the encoder, and an empty tape."""
        image, mask = self.reader.begin(source, source_mask, lengths)
        return Decoding(image=image, mask=mask, told=self._untold(image))

    def step(self, state: Decoding, previous: Tensor) -> tuple[Tensor, Decoding]:
        """Write the output before on the tape, and go one step on."""
        told, place = state.told, state.place
        if place > 0:
            told = self._write(told, self._additions(previous), place - 1)
        image = self.decoder(state.image, state.mask, told)
        return image[:, 0, place], Decoding(image=image, mask=state.mask, told=told, place=place + 1)

    @property
    def _units(self) -> list[ImageCGRU]:
        return [unit for unit in self.decoder.units if isinstance(unit, ImageCGRU)]

    def _additions(self, outputs: Tensor) -> list[Tensor]:
        """What embedded outputs (…, width) add to each unit, each (…, columns, kernel, 3 * maps)."""
        written = outputs if self.written is None else self.written(outputs)
        columns = self.reader.width
        return [unit.tell(written, columns, everywhere=self.everywhere) for unit in self._units]

    def _untold(self, image: Tensor) -> tuple[Tensor, ...]:
        """What an empty tape adds to each unit."""
        nothing = image.new_zeros(*image.shape[:3], 3 * image.shape[3])
        return tuple(nothing for _ in self._units)

    def _write(self, told: tuple[Tensor, ...], additions: list[Tensor], place: int) -> tuple[Tensor, ...]:
        """What the tape adds to each unit, once an output that adds this stands at that position."""
        found: list[Tensor] = []
        for before, added, unit in zip(told, additions, self._units, strict=True):
            columns, kernel = added.shape[1:3]
            first = place - unit.after
            # padding by a negative number cuts off what would stand outside of the image
            sides = (first, before.shape[2] - first - kernel, 0, before.shape[1] - columns)
            found.append(before + functional.pad(added, (0, 0, *sides)))
        return tuple(found)
