"""The blocks `lstm` and `gru`, computed by fused kernels if possible, otherwise by Python steps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...grammar.vocabulary.spec import Settings, as_int
from ..core.block import Block, Context, InputError, register_block
from ..core.dropout import Dropout
from ..core.initialisation import Initialisable, WeightRole, glorot, roles
from ..core.operations import without_autocast
from ..core.transducer import State

HELD = 3e4
"""The square root of the offset that opens or closes a gate completely. A float16 can hold it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentState(State):
    """The state of stacked recurrent layers.

    It has the output h and, in an LSTM, the cell s, each (batch, layers, width).
    """

    tensors: tuple[Tensor, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """States and gates of a recurrent layer at every position, each (batch, length, width).

    `hidden` is the output. `cell` is the state that the layer passes on; in a GRU it is the hidden state
    itself. `gates` always has `forget`, the share of the cell that is kept.
    """

    hidden: Tensor
    cell: Tensor
    gates: Mapping[str, Tensor]


class RecurrentLayer(Initialisable):
    """Base class of recurrent layers, with weights for the input and for the state."""

    weight_roles = roles(weight_x=WeightRole.MATRIX, weight_h=WeightRole.MATRIX, bias=WeightRole.BIAS)

    maps: ClassVar[int]
    state_count: ClassVar[int]  # number of state tensors
    gate_names: ClassVar[tuple[str, ...]]  # of the gates that `step` returns

    def __init__(self, width: int, inputs: int) -> None:
        super().__init__()
        self.weight_x = nn.Parameter(torch.empty(self.maps * width, inputs))
        self.weight_h = nn.Parameter(torch.empty(self.maps * width, width))
        self.bias = nn.Parameter(torch.empty(self.maps * width))

    def initialise(self, generator: torch.Generator | None) -> None:
        """Draw the input weights Glorot uniform and the state weights orthogonal, as TensorFlow does."""
        glorot(self.weight_x, self.weight_x.shape[1], self.weight_x.shape[0], generator)
        nn.init.orthogonal_(self.weight_h, generator=generator)
        nn.init.zeros_(self.bias)

    def split_maps(self, name: str, tensor: Tensor) -> Sequence[Tensor]:
        return tensor.chunk(self.maps) if name in RecurrentLayer.weight_roles else [tensor]

    @abstractmethod
    def run_fused(
        self, x: Tensor, start: tuple[Tensor, ...], mask: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Run the fused kernel, and return the outputs and each row's final states.

        Outputs are (batch, length, width). With a mask (batch, length) a row ends at its last valid position;
        later outputs are undefined. States are contiguous, as cuDNN requires; gradients need training mode.
        """

    @abstractmethod
    def step(
        self, mapped: Tensor, state: tuple[Tensor, ...]
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Return the next state and the gates.

        The first tensor of the state is the output. The mapped input is (batch, maps * width), all others
        (batch, width).
        """

    def unrolled(
        self, x: Tensor, start: tuple[Tensor, ...]
    ) -> tuple[tuple[Tensor, ...], list[tuple[Tensor, ...]]]:
        """Run all steps in Python; return all states (batch, length, width) and each position's gates."""
        mapped = functional.linear(x, self.weight_x, self.bias)  # (batch, length, maps * width)
        states: list[tuple[Tensor, ...]] = []
        gates: list[tuple[Tensor, ...]] = []
        for each in mapped.unbind(1):
            start, opened = self.step(each, start)
            states.append(start)
            gates.append(opened)
        return tuple(torch.stack(each, 1) for each in zip(*states, strict=True)), gates


class LSTMLayer(RecurrentLayer):
    """An LSTM layer whose forget gate begins with a bias of 1 (Jozefowicz, Zaremba and Sutskever 2015)."""

    maps = 4  # input gate, forget gate, candidate, output gate: the kernels' order
    state_count = 2
    gate_names = ("input", "forget", "output")

    def initialise(self, generator: torch.Generator | None) -> None:
        super().initialise(generator)
        with torch.no_grad():
            self.bias.chunk(self.maps)[1].fill_(1.0)

    def run_fused(
        self, x: Tensor, start: tuple[Tensor, ...], mask: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Run `torch.lstm`.

        It expects two biases; the second one is zero. After a row's end, an additional input closes the input
        gate and opens the forget gate, both exactly. So the cell reaches the end of the batch unchanged.
        """
        weight_x = self.weight_x
        if mask is not None:
            x = torch.cat([x, HELD * (~mask).unsqueeze(-1).to(x.dtype)], -1)
            column = weight_x.new_zeros(self.maps, self.weight_h.shape[1], 1)
            column[0], column[1] = -HELD, HELD
            weight_x = torch.cat([weight_x, column.flatten(0, 1)], 1)
        weights = _for_kernel(weight_x, self.weight_h, self.bias, torch.zeros_like(self.bias))
        begin = tuple(each.unsqueeze(0) for each in start)
        y, h, s = torch.lstm(x, begin, weights, True, 1, 0.0, torch.is_grad_enabled(), False, True)
        return y, (h.squeeze(0) if mask is None else y[_last_positions(mask)], s.squeeze(0))

    def step(
        self, mapped: Tensor, state: tuple[Tensor, ...]
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Return the next state and the gates (Gers et al. 2000, equations 1 to 7, without peepholes)."""
        h, s = state
        mixed, width = torch.addmm(mapped, h, self.weight_h.T), h.shape[1]  # (batch, 4 * width)
        i, f = torch.sigmoid(mixed[:, : 2 * width]).chunk(2, 1)
        o = torch.sigmoid(mixed[:, 3 * width :])
        s = torch.addcmul(f * s, i, torch.tanh(mixed[:, 2 * width : 3 * width]))
        return (o * torch.tanh(s), s), (i, f, o)


class GRULayer(RecurrentLayer):
    """A GRU layer in the form of cuDNN.

    The reset gate multiplies the mapped state W h + b, and not the state h.
    """

    weight_roles = roles(**RecurrentLayer.weight_roles, state_bias=WeightRole.BIAS)
    maps = 3  # reset gate, update gate, candidate: the kernels' order
    state_count = 1
    gate_names = ("reset", "forget")  # the update gate is the share that is kept

    def __init__(self, width: int, inputs: int) -> None:
        super().__init__(width, inputs)
        self.state_bias = nn.Parameter(torch.empty(width))

    def initialise(self, generator: torch.Generator | None) -> None:
        super().initialise(generator)
        nn.init.zeros_(self.state_bias)

    def run_fused(
        self, x: Tensor, start: tuple[Tensor, ...], mask: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Run `torch.gru`.

        It expects two biases; the second one is zero except for the candidate. A GRU's outputs are its
        states, so a row's final state is its last valid output.
        """
        weights = _for_kernel(self.weight_x, self.weight_h, self.bias, self._full_bias())
        begin, with_grad = start[0].unsqueeze(0), torch.is_grad_enabled()
        y, h = torch.gru(x, begin, weights, True, 1, 0.0, with_grad, False, True)
        return y, (h.squeeze(0) if mask is None else y[_last_positions(mask)],)

    def step(
        self, mapped: Tensor, state: tuple[Tensor, ...]
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Return the next state and the gates (Cho et al. 2014, equations 5 to 8)."""
        (h,) = state
        width = h.shape[1]
        kept = torch.addmm(self._full_bias(), h, self.weight_h.T)  # (batch, 3 * width)
        r, z = torch.sigmoid(mapped[:, : 2 * width] + kept[:, : 2 * width]).chunk(2, 1)
        n = torch.tanh(torch.addcmul(mapped[:, 2 * width :], r, kept[:, 2 * width :]))
        return (torch.lerp(n.to(h.dtype), h, z.to(h.dtype)),), (r, z)  # autocast lowers their precision

    def _full_bias(self) -> Tensor:
        return functional.pad(self.state_bias, (2 * len(self.state_bias), 0))


class Recurrent(Block):
    """Stacked recurrent layers with dropout between them.

    The block is causal, so padding after a sequence only needs a mask for the last states. With
    `use_fused = False` the steps always run in Python, which is slower but equal.
    """

    layer_class: ClassVar[type[RecurrentLayer]]
    state_is_bounded = True
    loops_over_positions = True
    use_fused: bool = True

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__()
        self.width = width = context.width
        self.layers = nn.ModuleList(self.layer_class(width, width) for _ in range(as_int(settings, "layers")))
        self.dropout = Dropout(context.config.settings.dropout)

    def set_input_width(self, inputs: int) -> None:
        """Set the input width of the first layer, before weights are drawn."""
        self.layers[0] = self.layer_class(self.width, inputs)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.run(x, self.zero_state(x))[0]

    def step_with_grad(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the outputs for a piece of a stream, and the new state.

        The state is (batch, tensors, layers, width): an LSTM has two tensors, h and s, a GRU one.
        """
        start = self.zero_state(x) if state is None else RecurrentState(tensors=state.unbind(1))
        y, last = self.run(x, start)
        return y, torch.stack(last.tensors, 1)

    def zero_state(self, x: Tensor) -> RecurrentState:
        """Return the initial state for sequences x (batch, length, width), which is zero."""
        nothing = x.new_zeros(len(x), len(self.layers), self.width)
        return RecurrentState(tensors=(nothing,) * self.layer_class.state_count)

    def run(
        self, x: Tensor, start: RecurrentState, mask: Tensor | None = None
    ) -> tuple[Tensor, RecurrentState]:
        """Return outputs (batch, length, width), and the state after each row's last valid position."""
        lasts: list[tuple[Tensor, ...]] = []
        for place, layer in enumerate(self.layers):
            assert isinstance(layer, RecurrentLayer)
            x = self.dropout(x) if place else x
            x, last = self._run(layer, x, tuple(part[:, place] for part in start.tensors), mask)
            lasts.append(last)
        return x, RecurrentState(tensors=tuple(torch.stack(part, 1) for part in zip(*lasts, strict=True)))

    def traces(self, x: Tensor) -> tuple[Trace, ...]:
        """Return each layer's states and gates at every position of x, without dropout."""
        found: list[Trace] = []
        start = self.zero_state(x)
        for place, layer in enumerate(self.layers):
            assert isinstance(layer, RecurrentLayer)
            states, gates = layer.unrolled(x, tuple(part[:, place] for part in start.tensors))
            opened = [torch.stack(gate, 1) for gate in zip(*gates, strict=True)]
            named = dict(zip(layer.gate_names, opened, strict=True))
            found.append(Trace(hidden=states[0], cell=states[-1], gates=named))
            x = states[0]
        return tuple(found)

    def _run(
        self, layer: RecurrentLayer, x: Tensor, start: tuple[Tensor, ...], mask: Tensor | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        if x.shape[-1] != (width := layer.weight_x.shape[1]):  # oneDNN would read other memory
            raise InputError(f"expected vectors of width {width}, got {x.shape[-1]}")
        has_kernels = self.use_fused and _has_kernels(x)
        if has_kernels and _needs_single_precision(x):
            with without_autocast(x.device):
                return self._run(layer, x.float(), tuple(part.float() for part in start), mask)
        if has_kernels and not _is_one_step_of_cudnn(x):
            return layer.run_fused(x, tuple(part.contiguous() for part in start), mask)
        states, _ = layer.unrolled(x, start)
        ends = (slice(None), -1) if mask is None else _last_positions(mask)
        return states[0], tuple(state[ends] for state in states)


def _for_kernel(*weights: Tensor) -> tuple[Tensor, ...]:
    if not weights[0].is_cuda:
        return weights
    return side_by_side(*weights)


def side_by_side(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Copy tensors into one contiguous block of memory; return views with their shapes."""
    block = torch.cat([each.flatten() for each in tensors])
    parts = block.split([each.numel() for each in tensors])
    return tuple(part.view_as(each) for part, each in zip(parts, tensors, strict=True))


def _last_positions(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the numbers of all rows of a mask (batch, length), and their last valid positions."""
    return torch.arange(len(mask), device=mask.device), mask.sum(1) - 1


def _needs_single_precision(x: Tensor) -> bool:
    """Return whether autocast uses a 16-bit type that the kernel does not support.

    A GPU's kernel accepts float16 for either type. OneDNN's LSTM supports no such type without AVX-512.
    """
    has_half = not x.is_cuda and torch.backends.cpu.get_cpu_capability().startswith("AVX512")
    return not x.is_meta and torch.is_autocast_enabled(x.device.type) and not has_half


def _is_one_step_of_cudnn(x: Tensor) -> bool:
    """Return whether cuDNN would copy the weights for the single step x, and keep them for gradients.

    A decoder with input feeding needs many such steps.
    """
    return x.is_cuda and x.shape[1] == 1


def _has_kernels(x: Tensor) -> bool:
    """Return whether fused kernels support x: not in torch.compile.

    The meta device imitates a training step on a CPU.
    """
    fused = ("cpu", "cuda", "meta") if torch.is_grad_enabled() else ("cpu", "cuda")
    return x.device.type in fused and not torch.compiler.is_compiling()


@register_block("lstm")
class LSTM(Recurrent):
    """Block `lstm`: long short-term memory (Hochreiter and Schmidhuber 1997).

    On a CPU, oneDNN computes it and keeps its own workspace, which `blocks.costs` counts.
    """

    layer_class = LSTMLayer


@register_block("gru")
class GRU(Recurrent):
    """Block `gru`: gated recurrent units (Cho et al. 2014)."""

    layer_class = GRULayer
