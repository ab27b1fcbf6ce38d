"""Initialisation of weights. One generator draws all weights of a model in a fixed order.

The role of a weight says what it does in its module, such as matrix or bias.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

import torch
from torch import Tensor, nn

from ...errors import ActivememError, hint, nearest_hint
from ...grammar.model_config import BiasInit, EmbeddingInit, Init


class WeightRoleError(ActivememError):
    """Error for a wrong weight role: an unknown one, or one of a parameter that the module does not have."""


class WeightRole(StrEnum):
    """The role of a weight in its module, such as matrix, embedding or bias."""

    MATRIX = "matrix"  # sums inputs: linear maps, convolutions over channels, maps within heads
    FILTER = "filter"  # taps of a depthwise convolution
    EMBEDDING = "embedding"  # vectors of symbols, positions, padding or memory slots
    BIAS = "bias"  # added to outputs, gates or scores
    NORM = "norm"  # gains and offsets of a normalisation
    GAIN = "gain"  # multiplied: skips, frequencies, shares
    RATE = "rate"  # decay of a gate or a state, span of a head
    OTHER = "other"  # undeclared

    @property
    def decays(self) -> bool:
        """Return whether weight decay applies to this role if norms and biases are exempt."""
        return self in (WeightRole.MATRIX, WeightRole.FILTER, WeightRole.EMBEDDING)


_KNOWN = tuple(role.value for role in WeightRole)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """A trainable parameter with its role. `name` is its name in the module that owns it."""

    module: nn.Module
    name: str
    role: WeightRole

    @property
    def fan_in(self) -> int:
        """Return the fan-in (number of inputs) of a matrix; 1 for other weights."""
        if self.role is not WeightRole.MATRIX:
            return 1
        parameter = self.module.get_parameter(self.name)
        own: Callable[[nn.Parameter], int] | None = getattr(self.module, "fan_in", None)
        return parameter[0].numel() if own is None else own(parameter)

    def split_maps(self, tensor: Tensor) -> Sequence[Tensor]:
        """Split a tensor of the weight's shape into views, one for each linear map in the weight."""
        own: Callable[[str, Tensor], Sequence[Tensor]] | None = getattr(self.module, "split_maps", None)
        if own is not None:
            return own(self.name, tensor)
        if isinstance(self.module, nn.MultiheadAttention) and self.name.startswith("in_proj_"):
            return tensor.chunk(3)
        return [tensor]


def find_weights(model: nn.Module) -> dict[nn.Parameter, Weight]:
    """Return a mapping from each parameter of a model to its module, name and role.

    A parameter that several modules share gets the role of the first one. Raise WeightRoleError with the
    faults of all modules.
    """
    found: dict[nn.Parameter, Weight] = {}
    faults: list[str] = []
    for path, module in model.named_modules():
        declared = getattr(module, "weight_roles", {})
        own = dict(module.named_parameters(recurse=False))
        faults += [f"{path or 'model'}: {fault}" for fault in _faults(module, declared)]
        for name, parameter in own.items():
            role = declared[name] if name in declared else _default_role(module, name, parameter)
            if role in _KNOWN and parameter not in found:
                found[parameter] = Weight(module=module, name=name, role=WeightRole(role))
    if faults:
        raise WeightRoleError("\n".join(["weight_roles cannot be read", *(f"  {each}" for each in faults)]))
    return found


def roles(**by_name: WeightRole) -> Mapping[str, WeightRole]:
    """Return the given roles as a mapping from parameter names, for a module's `weight_roles`."""
    return by_name


def declare_role(module: nn.Module, role: WeightRole) -> None:
    """Declare `role` for all parameters of a module from another package, including inner modules.

    Modules that declare roles themselves are not changed.
    """
    for part in module.modules():
        if not hasattr(part, "weight_roles"):
            names = [name for name, _ in part.named_parameters(recurse=False)]
            part.weight_roles = dict.fromkeys(names, role)  # pyright: ignore[reportArgumentType] -- no module


def _faults(module: nn.Module, declared: Mapping[str, str]) -> list[str]:
    faults: list[str] = []
    for name, role in declared.items():
        if role not in _KNOWN:
            expected = f"expected for {name} one of {', '.join(_KNOWN)}"
            faults.append(f"{expected}, got {role!r}{hint(str(role), _KNOWN)}")
        if not hasattr(module, name):
            names = [name for name, _ in module.named_parameters(recurse=False)]
            expected = f"expected a parameter of {type(module).__name__}"
            faults.append(f"{expected}, got {name!r}{nearest_hint(name, names)}")
    return faults


def _default_role(module: nn.Module, name: str, parameter: nn.Parameter) -> WeightRole:
    """Return the role of a parameter for which the module declares none.

    1. Weights of torch's embeddings are embeddings. 2. All parameters of a class with "Norm" in its name
    belong to a normalisation. 3. A name that begins or ends with "bias" is a bias. 4. A convolution of torch
    that convolves each channel separately has filters. 5. A name that begins or ends with "weight" is a
    matrix, or a gain if it is a single vector. 6. Every other parameter is `other`: it does not decay if
    norms do not, and Muon updates it by AdamW.
    """
    if isinstance(module, nn.Embedding | nn.EmbeddingBag):
        return WeightRole.EMBEDDING
    if "Norm" in type(module).__name__:
        return WeightRole.NORM
    if name.startswith("bias") or name.endswith("bias"):
        return WeightRole.BIAS
    if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d) and 1 < module.in_channels == module.groups:
        return WeightRole.FILTER
    if name.startswith("weight") or name.endswith("weight"):
        is_vector = parameter.dim() < 2
        return WeightRole.GAIN if is_vector or isinstance(module, nn.PReLU) else WeightRole.MATRIX
    return WeightRole.OTHER


class Initialisable(nn.Module, ABC):
    """Base class of modules whose weights are drawn by `initialise`.

    Before that, the module's own weights are uninitialised.
    """

    weight_roles: ClassVar[Mapping[str, WeightRole]]

    @abstractmethod
    def initialise(self, generator: torch.Generator | None) -> None:
        """Draw the module's own weights in a fixed order. Without a generator, use torch's global one."""

    def fan_in(self, weight: nn.Parameter) -> int:
        """Return the number of inputs of a matrix (fan-in)."""
        return weight[0].numel()

    def split_maps(self, name: str, tensor: Tensor) -> Sequence[Tensor]:
        """Split a tensor of a weight's shape into views, one for each linear map in the weight.

        `name` is the weight's name.
        """
        return [tensor]


class Linear(nn.Linear, Initialisable):
    """One or more linear maps of the same input, with their weights in one matrix.

    Weights are initialised as N(0, std²) or, if `std` is None, by the rule `init`, by default the model's
    rule. `outputs` is the size of each of `maps` equal maps, or a list of sizes. Each map has its own
    initialisation bound, unless they are `drawn_as_one`, as in programs with a single map.
    """

    weight_roles = roles(weight=WeightRole.MATRIX, bias=WeightRole.BIAS)

    def __init__(
        self,
        inputs: int,
        outputs: int | Sequence[int],
        *,
        bias: bool = True,
        maps: int = 1,
        drawn_as_one: bool = False,
        std: float | None = None,
        init: Init | None = None,
        bias_init: BiasInit = "zero",
    ) -> None:
        sizes = (outputs,) * maps if isinstance(outputs, int) else tuple(outputs)
        super().__init__(inputs, sum(sizes), bias=bias)
        self.map_sizes, self.drawn_as_one = sizes, drawn_as_one
        self.std = std
        self.init: Init | None = init
        self.bias_init: BiasInit = bias_init

    def reset_parameters(self) -> None:
        """Do nothing, so that torch's global generator is not used. `initialise` draws the weights."""

    def split_maps(self, name: str, tensor: Tensor) -> Sequence[Tensor]:
        return tensor.split(self.map_sizes)

    def initialise(
        self, generator: torch.Generator | None, rule: Init = "glorot", *, uniform_bias: bool = False
    ) -> None:
        """Draw the weight from N(0, `std`²) if `std` is set, else by `init` or `rule`; then draw the bias.

        The bias follows `bias_init`, or is uniform with `uniform_bias`.
        """
        inputs, sizes = self.in_features, (self.out_features,) if self.drawn_as_one else self.map_sizes
        match "given" if self.std is not None else self.init or rule:
            case "given":
                nn.init.normal_(self.weight, std=self.std or 0.0, generator=generator)
            case "glorot":
                # stacked maps share a bound and are drawn together
                parts = [self.weight] if len(set(sizes)) == 1 else self.weight.split(sizes)
                for part, outputs in zip(parts, sizes, strict=False):
                    glorot(part, inputs, outputs, generator)
            case "he":  # He et al. 2015, equation 10
                nn.init.normal_(self.weight, std=math.sqrt(2.0 / inputs), generator=generator)
            case "lecun":  # LeCun et al. 1998, equation 16
                nn.init.normal_(self.weight, std=inputs**-0.5, generator=generator)
            case "uniform":
                bound = inputs**-0.5
                nn.init.uniform_(self.weight, -bound, bound, generator=generator)
        if self.bias is not None:
            bias_init = "uniform" if uniform_bias else self.bias_init
            draw_bias(self.bias, bias_init, generator, inputs=inputs, sizes=sizes)


class Embedding(nn.Embedding, Initialisable):
    """Token embeddings, initialised by `rule`. With some rules, the model multiplies them by a factor."""

    weight_roles = roles(weight=WeightRole.EMBEDDING)

    def __init__(self, symbols: int, width: int, *, rule: EmbeddingInit = "scaled") -> None:
        super().__init__(symbols, width)
        self.rule: EmbeddingInit = rule

    def reset_parameters(self) -> None:
        """Do nothing, so that torch's global generator is not used. `initialise` draws the weights."""

    def initialise(self, generator: torch.Generator | None) -> None:
        match self.rule:
            case "scaled":
                nn.init.normal_(self.weight, std=self.embedding_dim**-0.5, generator=generator)
            case "unit" | "unit_scaled":
                nn.init.normal_(self.weight, generator=generator)
            case "uniform":  # the default of Keras
                nn.init.uniform_(self.weight, -0.05, 0.05, generator=generator)
            case "unit_uniform":  # the program of Kaiser and Bengio 2016
                nn.init.uniform_(self.weight, -1.7, 1.7, generator=generator)


@contextmanager
def drawn_by(generator: torch.Generator | None) -> Iterator[None]:
    """Return a context in which `generator` decides what torch's global generator draws.

    Modules of torch draw their weights from the global one when they are made. It is seeded from a copy of
    `generator`, so that the numbers of `generator` stay the same, and gets its state back at the end. Without
    `generator`, nothing changes.
    """
    if generator is None:
        yield
        return
    copy = torch.Generator()
    copy.set_state(generator.get_state())
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(int(torch.randint(2**62, (), generator=copy)))
        yield


def glorot(weight: Tensor, inputs: int, outputs: int, generator: torch.Generator | None) -> None:
    """Draw a weight from U(-a, a), a = sqrt(6 / (inputs + outputs)) (Glorot and Bengio 2010, equation 16).

    The fans are arguments, since one weight may hold several stacked maps.
    """
    bound = math.sqrt(6.0 / (inputs + outputs))
    nn.init.uniform_(weight, -bound, bound, generator=generator)


@torch.no_grad()
def widen_output(output: Linear, base: int, rule: Init) -> None:
    """Rescale an output layer's initial weight, as if it had `base` inputs (Yang et al. 2022, Table 8)."""
    if output.std is None:
        outputs = output.out_features if rule == "glorot" else 0
        output.weight.mul_(math.sqrt((output.in_features + outputs) / (base + outputs)))


def draw_bias(
    bias: Tensor, rule: BiasInit, generator: torch.Generator | None, *, inputs: int, sizes: Sequence[int]
) -> None:
    """Initialise the biases of stacked linear maps by `rule`.

    Each map has `inputs` inputs; `sizes` are the numbers of outputs. The rule is zero, Glorot uniform or
    uniform. Glorot uniform follows TensorFlow, which counts a bias's outputs as its inputs; uniform follows
    torch.
    """
    match rule:
        case "zero":
            nn.init.zeros_(bias)
        case "glorot":
            parts = [bias] if len(set(sizes)) == 1 else bias.split(list(sizes))
            for part, outputs in zip(parts, sizes, strict=False):
                glorot(part, outputs, outputs, generator)
        case "uniform":
            nn.init.uniform_(bias, -(inputs**-0.5), inputs**-0.5, generator=generator)


def initialise(
    model: nn.Module,
    generator: torch.Generator | None,
    rule: Init = "glorot",
    *,
    uniform_bias: bool = False,
) -> None:
    """Draw the weights of all modules of a model. Linear maps follow `rule`.

    A shared module is drawn once.
    """
    for module in model.modules():
        if isinstance(module, Linear):
            module.initialise(generator, rule, uniform_bias=uniform_bias)
        elif isinstance(module, Initialisable):
            module.initialise(generator)
