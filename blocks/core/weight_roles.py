"""Roles of weights, by which weight decay, Muon, clipping and maximal updates decide.

A module declares the roles of its own parameters in `weight_roles`, beside the code that makes them:

    class Rates(nn.Module):
        weight_roles = {"log_rate": "rate"}

Parameters without a declaration get the role that `_default_role` finds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from torch import Tensor, nn

from ...errors import ActivememError


class WeightRoleError(ActivememError):
    """A module that declares an unknown role, or the role of a parameter that it does not have."""


class WeightRole(StrEnum):
    """The role of a weight in its module."""

    MATRIX = "matrix"  # adds up inputs: linear maps, convolutions over channels, maps within heads
    FILTER = "filter"  # the taps by which each channel is convolved by itself
    EMBEDDING = "embedding"  # vectors of symbols, positions, padding or memory slots
    BIAS = "bias"  # is added: by output, by gate, or to scores
    NORM = "norm"  # gains and offsets of a normalisation
    GAIN = "gain"  # multiplies: skips, frequencies, shares
    RATE = "rate"  # how fast a gate or a state forgets, how far a head sees
    OTHER = "other"  # undeclared

    @property
    def decays(self) -> bool:
        """Return whether weight decay applies to this role when norms and biases do not decay."""
        return self in (WeightRole.MATRIX, WeightRole.FILTER, WeightRole.EMBEDDING)


_KNOWN = tuple(role.value for role in WeightRole)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """A parameter with its role, and the module that owns it under a name."""

    module: nn.Module
    name: str
    role: WeightRole

    @property
    def fan_in(self) -> int:
        """The number of inputs that each output of a matrix sums; 1 for every other role."""
        if self.role is not WeightRole.MATRIX:
            return 1
        parameter = self.module._parameters[self.name]
        assert parameter is not None, "only parameters that exist are weights"
        own: Callable[[nn.Parameter], int] | None = getattr(self.module, "fan_in", None)
        return parameter[0].numel() if own is None else own(parameter)

    def split_maps(self, tensor: Tensor) -> Sequence[Tensor]:
        """Return views of the separate maps in the weight, or in a tensor of its shape."""
        own: Callable[[str, Tensor], Sequence[Tensor]] | None = getattr(self.module, "split_maps", None)
        if own is not None:
            return own(self.name, tensor)
        if isinstance(self.module, nn.MultiheadAttention) and self.name.startswith("in_proj_"):
            return tensor.chunk(3)
        return [tensor]


def find_weights(model: nn.Module) -> dict[nn.Parameter, Weight]:
    """Return all parameters of a model with their roles; a shared one has the role of its first owner.

    Raises WeightRoleError with the faults of all modules.
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
    """Return a declaration for `weight_roles` of a class."""
    return by_name


def declare_role(module: nn.Module, role: WeightRole) -> None:
    """Declare one role for all parameters of a module that has been built elsewhere and declares none."""
    for part in module.modules():
        if not hasattr(part, "weight_roles"):
            names = [name for name, _ in part.named_parameters(recurse=False)]
            part.weight_roles = dict.fromkeys(names, role)  # pyright: ignore[reportArgumentType] -- no module


def _faults(module: nn.Module, declared: Mapping[str, str]) -> list[str]:
    faults: list[str] = []
    for name, role in declared.items():
        if role not in _KNOWN:
            near = get_close_matches(str(role), _KNOWN, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            faults.append(f"expected for {name} one of {', '.join(_KNOWN)}, got {role!r}{hint}")
        if not hasattr(module, name):
            names = [name for name, _ in module.named_parameters(recurse=False)]
            near = get_close_matches(name, names, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            faults.append(f"expected a parameter of {type(module).__name__}, got {name!r}{hint}")
    return faults


def _default_role(module: nn.Module, name: str, parameter: nn.Parameter) -> WeightRole:
    """Return the role of a parameter that its module does not declare.

    1. Weights of torch's embeddings are embeddings.
    2. All parameters of a class with "Norm" in its name belong to a normalisation.
    3. A name that begins or ends with "bias" is a bias.
    4. A convolution of torch that convolves each channel separately has filters.
    5. A name that begins or ends with "weight" is a matrix, or a gain if it is a single vector.
    6. Every other parameter is `other`: it does not decay where norms do not, and moves as by AdamW in Muon.
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
