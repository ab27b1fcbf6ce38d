"""What a normalisation computes, by the names of `norm_kind`: what comes along, and those of plug-ins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ..plugins import OpenRegistry, contract_faults, count_faults

if TYPE_CHECKING:
    from torch import nn


class NormKind(ABC):
    """A map of each vector of a sequence by itself to one as wide; `source` is who has thought of it.

    It has no products of matrices, so that no operations are counted.
    """

    source = ""

    @abstractmethod
    def parameters(self, width: int) -> int:
        """How many numbers it learns for vectors so wide."""

    @abstractmethod
    def saved(self, width: int) -> int:
        """How many numbers training keeps of each vector for the backward pass, beside the vector itself."""


class LayerNormKind(NormKind):
    """The vector less its mean, divided by its deviation, with a gain and an offset for each channel."""

    source = "Ba, Kiros and Hinton 2016"

    def parameters(self, width: int) -> int:
        """A gain and an offset for each channel."""
        return 2 * width

    def saved(self, width: int) -> int:
        """The mean and the deviation."""
        return 2


class RmsNormKind(NormKind):
    """The vector divided by its root mean square, with a gain for each channel."""

    source = "Zhang and Sennrich 2019"

    def parameters(self, width: int) -> int:
        """A gain for each channel."""
        return width

    def saved(self, width: int) -> int:
        """The divided vector, and by what."""
        return width + 1


class PluginNorm(NormKind):
    """A normalisation of a plug-in: what it costs, and its module."""

    @abstractmethod
    def build(self, width: int, eps: float) -> nn.Module:
        """The module, (…, width) to the same; `eps` is the `norm_eps` of the model."""


NORMS: OpenRegistry[NormKind] = OpenRegistry(
    "norm", {"layer_norm": LayerNormKind(), "rms_norm": RmsNormKind()}
)
"""Every kind of normalisation by its name."""

NormT = TypeVar("NormT", bound=PluginNorm)


def register_norm(name: str, *, source: str) -> Callable[[type[NormT]], type[NormT]]:
    """A decorator that adds a kind of normalisation; `source` is who has thought of it.

    Raises ValueError for a taken name, and for a class that lacks something.
    """

    def register(cls: type[NormT]) -> type[NormT]:
        if faults := contract_faults(cls, PluginNorm):
            raise ValueError("; ".join(faults))
        kind = cls()
        if faults := [fault for say in (kind.parameters, kind.saved) for fault in count_faults(say, 8)]:
            raise ValueError("; ".join(faults))
        kind.source = source
        NORMS.register(name, kind)
        return cls

    return register
