"""The Neural GPU, its Markovian variant, and its extended variant with a tape of outputs.

An image is (batch, width, length, maps), the layout that two-dimensional convolutions read directly;
position i of a sequence is in its column 0, at [:, 0, i].
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...grammar.vocabulary.neural_gpu import image_maps
from ...grammar.vocabulary.spec import Settings, as_bool, as_int, as_word
from ..core.block import Context
from ..core.dropout import Dropout
from ..core.initialisation import Initialisable, Linear, WeightRole, roles
from ..core.operations import saturating_sigmoid
from ..core.transducer import State, StateT, Transducer, register_transducer
from ..layers.convolutions import zero_masked

ORTHOGONAL_GAIN = 1.8 * 0.8
"""The gain of the orthogonal kernels (the program of Kaiser and Bengio 2016)."""

GATE_BIAS_INIT = 1.0
"""The initial biases of the gates, so that a unit keeps most of its input (same program)."""

MAX_DROPOUT = 0.9
"""The maximum dropout rate; in short images, the multiple of the model's rate would exceed 1."""


class ImageCGRU(Initialisable):
    """A convolutional gated recurrent unit on an image (Kaiser and Bengio 2016, equation 1).

    CGRU(s) = u⊙s + (1−u)⊙tanh(U∗(r⊙s) + B), where s is the image, and u and r are gates. With a tape, each of
    the three convolutions also adds a convolution of the tape.
    """

    weight_roles = roles(
        gates=WeightRole.MATRIX,
        gates_bias=WeightRole.BIAS,
        candidate=WeightRole.MATRIX,
        candidate_bias=WeightRole.BIAS,
        tape=WeightRole.MATRIX,
    )

    def __init__(self, *, maps: int, kernel: int, taped: bool) -> None:
        super().__init__()
        self.before = (kernel - 1) // 2  # kernel positions on one side
        self.after = kernel - 1 - self.before  # kernel positions on the other side
        self.gates = nn.Parameter(torch.empty(2 * maps, kernel, kernel, maps))  # u and r separately
        self.gates_bias = nn.Parameter(torch.empty(2 * maps))
        self.candidate = nn.Parameter(torch.empty(maps, kernel, kernel, maps))
        self.candidate_bias = nn.Parameter(torch.empty(maps))
        self.tape = nn.Parameter(torch.empty(3 * maps, kernel, kernel, maps)) if taped else None

    def initialise(self, generator: torch.Generator | None) -> None:
        """Draw orthogonal kernels, and set the gates' biases so that a unit keeps most of its input.

        In each of the three convolutions, the kernels for the image and for the tape are drawn together.
        """
        maps, kernel = self.candidate.shape[:2]
        inputs = maps if self.tape is None else 2 * maps
        places = [*self.gates.data.chunk(2), self.candidate.data]
        tapes = [None] * 3 if self.tape is None else self.tape.data.chunk(3)
        for place, tape in zip(places, tapes, strict=True):
            drawn = place.new_empty(maps, kernel, kernel, inputs)
            nn.init.orthogonal_(drawn, ORTHOGONAL_GAIN, generator=generator)
            place.copy_(drawn[..., :maps])
            if tape is not None:
                tape.copy_(drawn[..., maps:])
        nn.init.constant_(self.gates_bias, GATE_BIAS_INIT)
        nn.init.zeros_(self.candidate_bias)

    def split_maps(self, name: str, tensor: Tensor) -> Sequence[Tensor]:
        return tensor.split(len(self.candidate))

    def forward(self, image: Tensor, mask: Tensor | None, tape_contribution: Tensor | None = None) -> Tensor:
        """Return the next image, zero where `mask` (batch, 1, length, 1) is false.

        `tape_contribution` (batch, width, length, 3 * maps) is added to u, r and the candidate.
        """
        gates = self._convolve(image, self.gates, self.gates_bias)
        if tape_contribution is not None:
            gates = gates + tape_contribution[..., : gates.shape[-1]]
        # products are in half precision under autocast, but the state keeps its precision
        u, r = saturating_sigmoid(gates).to(image.dtype).chunk(2, -1)  # each (batch, width, length, maps)
        candidate = self._convolve(r * image, self.candidate, self.candidate_bias)
        if tape_contribution is not None:
            candidate = candidate + tape_contribution[..., gates.shape[-1] :]
        y = torch.lerp(torch.tanh(candidate).to(image.dtype), image, u)
        return y if mask is None else y * mask

    def tape_contribution(self, outputs: Tensor, columns: int, *, everywhere: bool) -> Tensor:
        """Return the contribution of outputs (…, maps) on the tape to the three convolutions.

        The outputs fill column 0 of an image of `columns` columns, or all columns if `everywhere`. The result
        is (…, affected columns, kernel, 3 * maps); their position is `after` in the kernel.
        """
        assert self.tape is not None, "this unit has no tape"
        if everywhere:  # column y reads column c through tap c - y + before
            taps = [self.tape[:, max(0, self.before - y) : columns - y + self.before] for y in range(columns)]
            reached = torch.stack([tap.sum(1) for tap in taps], 1)  # (3 * maps, columns, kernel, maps)
        else:  # only column 0 holds anything
            reached = self.tape[:, : self.before + 1].flip(1)[:, :columns]
        weight = reached.flip(2).permute(1, 2, 0, 3)  # (columns, kernel, 3 * maps, maps)
        spread = functional.linear(outputs, weight.flatten(0, 2))
        return spread.unflatten(-1, weight.shape[:3])

    def _convolve(self, image: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Convolve an image, padded with zeros, without changing its size."""
        x = image.permute(0, 3, 1, 2)  # (batch, maps, width, length)
        if self.after > self.before:  # an even kernel
            x = functional.pad(x, (0, 1, 0, 1))
        y = functional.conv2d(x, weight.permute(0, 3, 1, 2), bias, padding=self.before)
        return y.permute(0, 2, 3, 1)


class CGRUStack(nn.Module):
    """A stack of ImageCGRU units, applied one after another in each step of a Neural GPU.

    Each step begins with dropout on the image. The dropout rate is the model's rate times 3 / sqrt(length),
    at most 0.9 (the program of Kaiser and Bengio 2016).
    """

    def __init__(self, *, layers: int, maps: int, kernel: int, dropout: float, taped: bool = False) -> None:
        super().__init__()
        self.units = nn.ModuleList(ImageCGRU(maps=maps, kernel=kernel, taped=taped) for _ in range(layers))
        self.dropout = dropout

    def forward(
        self, image: Tensor, mask: Tensor | None, tape_contributions: tuple[Tensor, ...] | None = None
    ) -> Tensor:
        if self.training and self.dropout > 0.0:
            image = Dropout(min(3.0 * self.dropout / math.sqrt(image.shape[2]), MAX_DROPOUT))(image)
        for place, unit in enumerate(self.units):
            image = unit(image, mask, None if tape_contributions is None else tape_contributions[place])
        return image


class ImageEncoder(nn.Module):
    """The encoder of a Neural GPU.

    It writes the source into column 0 of an image, and changes the image in steps. There are as many steps as
    the image is long. The image of each sequence is as long as the longer of its source and target. Beyond
    this size the image is zero. After as many steps as its length, the image stays unchanged. With a norm,
    the whole image is mapped and normalised, including empty positions. `first` is applied once, before the
    steps (the program of Kaiser and Bengio 2016).
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__()
        inputs, maps, kernel = context.width, image_maps(settings, context.width), as_int(settings, "kernel")
        normed, has_first = as_bool(settings, "input_norm"), as_bool(settings, "first_unit")
        self.width = as_int(settings, "width")
        self.entry = Linear(inputs, maps, bias=normed) if normed or inputs != maps else None
        self.norm = nn.LayerNorm(maps, eps=context.config.settings.norm_eps) if normed else None
        self.first = ImageCGRU(maps=maps, kernel=kernel, taped=False) if has_first else None
        self.stack = _build_cgru_stack(settings, context)

    def forward(
        self, source: Tensor, target: Tensor, source_mask: Tensor | None, target_mask: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Return the image of a source and a known target, and its mask (batch, 1, length, 1) or None."""
        sizes = None
        if source_mask is not None or target_mask is not None:
            sizes = torch.maximum(_lengths(source, source_mask), _lengths(target, target_mask))
        return self._read(source, source_mask, max(source.shape[1], target.shape[1]), sizes)

    def begin(
        self, source: Tensor, source_mask: Tensor | None, lengths: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """Return the image for targets of these lengths (batch,), and the mask of the image."""
        sizes = torch.maximum(_lengths(source, source_mask), lengths)
        return self._read(source, source_mask, int(sizes.max()), sizes)

    def _read(
        self, source: Tensor, source_mask: Tensor | None, length: int, sizes: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Return the image of a source with `length` positions, and its mask.

        `sizes` (batch,) are the positions of each sequence's own image; None means `length` for all.
        """
        x = zero_masked(source, source_mask)[:, :length]
        image = self._first_image(x, length)
        if sizes is None:
            image = image if self.first is None else self.first(image, None)
            for _ in range(length):
                image = self.stack(image, None)
            return image, None
        steps = torch.arange(length, device=source.device) < sizes[:, None]  # (batch, length)
        mask = steps[:, None, :, None].to(image.dtype)
        image = image if self.norm is None else image * mask
        image = image if self.first is None else self.first(image, mask)
        for going in steps[:, :, None, None, None].unbind(1):
            image = torch.where(going, self.stack(image, mask), image)
        return image, mask

    def _first_image(self, source: Tensor, length: int) -> Tensor:
        if self.entry is None or self.norm is None:
            x = source if self.entry is None else self.entry(source).to(source.dtype)
            return functional.pad(x.unsqueeze(1), (0, 0, 0, length - x.shape[1], 0, self.width - 1))
        assert self.entry.bias is not None, "a model with an input norm has an entry map with a bias"
        if source.shape[1] < length:
            source = functional.pad(source, (0, 0, 0, length - source.shape[1]))
        column = self.norm(self.entry(source)).to(source.dtype)  # (batch, length, maps)
        empty = self.norm(self.entry.bias).to(source.dtype)  # the map's output for zeros
        beside = empty.expand(len(source), self.width - 1, length, -1)
        return torch.cat([column.unsqueeze(1), beside], 1)


def _build_cgru_stack(settings: Settings, context: Context, *, taped: bool = False) -> CGRUStack:
    return CGRUStack(
        layers=as_int(settings, "layers"),
        maps=image_maps(settings, context.width),
        kernel=as_int(settings, "kernel"),
        dropout=context.config.settings.dropout,
        taped=taped,
    )


def _lengths(x: Tensor, mask: Tensor | None) -> Tensor:
    return torch.full((len(x),), x.shape[1], device=x.device) if mask is None else mask.sum(1)


class ImageTransducer(Transducer[StateT]):
    """A Neural GPU that reads a source and writes a target.

    It computes the outputs from an image: a grid of vectors that holds the source. More outputs need a larger
    grid.
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, context)
        self.reader = ImageEncoder(settings, context)
        self.output_width = image_maps(settings, context.width)

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        source_mask: Tensor | None = None,
        target_mask: Tensor | None = None,
    ) -> Tensor:
        """Return all outputs. The image of a sequence is as long as the longer of source and target."""
        image, mask = self.reader(source, target, source_mask, target_mask)
        return self.write(image, mask, target)

    def begin(self, source: Tensor, source_mask: Tensor | None, lengths: Tensor) -> StateT:
        return self.first_state(*self.reader.begin(source, source_mask, lengths))

    @abstractmethod
    def write(self, image: Tensor, mask: Tensor | None, target: Tensor) -> Tensor:
        """Return all outputs (batch, m, outputs) for a target.

        `image` is the image of the source. `mask` (batch, 1, length, 1) belongs to the image.
        """

    @abstractmethod
    def first_state(self, image: Tensor, mask: Tensor | None) -> StateT:
        """Return the state before the first output. `image` is the image of the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeuralGPUState(State):
    """The state of a Neural GPU while it writes its outputs.

    `column` is column 0 of its last image, (batch, length, maps). `position` is the next position.
    """

    column: Tensor
    position: int = 0


class ParallelNeuralGPU(ImageTransducer[NeuralGPUState]):
    """A transducer that computes the whole image first, so that each output needs only one linear map."""

    def first_state(self, image: Tensor, mask: Tensor | None) -> NeuralGPUState:
        return NeuralGPUState(column=image[:, 0])


@register_transducer("neural_gpu")
class NeuralGPU(ParallelNeuralGPU):
    """A Neural GPU whose outputs depend only on their position in the image (Kaiser and Sutskever 2016)."""

    def write(self, image: Tensor, mask: Tensor | None, target: Tensor) -> Tensor:
        return image[:, 0, : target.shape[1]]

    def step(self, state: NeuralGPUState, previous: Tensor) -> tuple[Tensor, NeuralGPUState]:
        return state.column[:, state.position], replace(state, position=state.position + 1)


@register_transducer("markov_neural_gpu")
class MarkovNeuralGPU(ParallelNeuralGPU):
    """A Neural GPU in which each output also depends on the embedding of the previous output.

    Kaiser and Bengio 2016, section 2.1.
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, context)
        self.output_width += context.width

    def write(self, image: Tensor, mask: Tensor | None, target: Tensor) -> Tensor:
        return torch.cat([image[:, 0, : target.shape[1]], target], -1)

    def step(self, state: NeuralGPUState, previous: Tensor) -> tuple[Tensor, NeuralGPUState]:
        output = torch.cat([state.column[:, state.position], previous], -1)
        return output, replace(state, position=state.position + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendedNeuralGPUState(State):
    """State of an ExtendedNeuralGPU's decoder: its image, mask, terms of the tape, and next position."""

    image: Tensor  # (batch, width, length, maps)
    mask: Tensor | None  # (batch, 1, length, 1)
    tape_contributions: tuple[Tensor, ...]  # each (batch, width, length, 3 * maps)
    position: int = 0


@register_transducer("extended_neural_gpu")
class ExtendedNeuralGPU(ImageTransducer[ExtendedNeuralGPUState]):
    """A Neural GPU with a decoder, which takes one step for each output.

    The decoder is a second stack, and starts from the last image. The convolutions of the tape are linear, so
    an output's contribution is the same at every later step, and is computed once. Position 0 of the target,
    the start symbol, is not written (Kaiser and Bengio 2016, section 2.2).
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__(settings, context)
        inputs, maps = context.width, self.output_width
        self.decoder = _build_cgru_stack(settings, context, taped=True)
        self.written = None if inputs == maps else Linear(inputs, maps, bias=False)
        self.everywhere = as_word(settings, "tape") == "all"

    def write(self, image: Tensor, mask: Tensor | None, target: Tensor) -> Tensor:
        """Compute the terms of all targets on the tape at once, before the first step."""
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
        """Return the contribution of outputs (…, width) to each unit, (…, columns, kernel, 3 * maps)."""
        written = outputs if self.written is None else self.written(outputs)
        columns = self.reader.width
        return [unit.tape_contribution(written, columns, everywhere=self.everywhere) for unit in self._units]

    def _empty_tape(self, image: Tensor) -> tuple[Tensor, ...]:
        nothing = image.new_zeros(*image.shape[:3], 3 * image.shape[3])
        return tuple(nothing for _ in self._units)

    def _extend_tape(
        self, tape_contributions: tuple[Tensor, ...], new_contributions: list[Tensor], place: int
    ) -> tuple[Tensor, ...]:
        found: list[Tensor] = []
        for before, added, unit in zip(tape_contributions, new_contributions, self._units, strict=True):
            columns, kernel = added.shape[1:3]
            first = place - unit.after
            # negative padding cuts off columns outside the image
            sides = (first, before.shape[2] - first - kernel, 0, before.shape[1] - columns)
            found.append(before + functional.pad(added, (0, 0, *sides)))
        return tuple(found)
