"""The normalisations that the setting `norm_kind` can name, including those of plug-ins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ..plugins import Registry, check_part, contract_faults

if TYPE_CHECKING:
    from torch import nn


class NormKind:
    """Base class of normalisations, which map each vector of a sequence separately.

    `source` names the publication or author.
    """

    source = ""


class LayerNormKind(NormKind):
    """Layer norm: subtract the mean, divide by the standard deviation, then apply gains and offsets."""

    source = "Ba, Kiros and Hinton 2016"


class RmsNormKind(NormKind):
    """RMS norm: divide by the root mean square, then apply a gain for each channel."""

    source = "Zhang and Sennrich 2019"


class PluginNorm(NormKind, ABC):
    """Base class of normalisations from plug-ins."""

    @abstractmethod
    def build(self, width: int, eps: float) -> nn.Module:
        """Return a module that maps (…, width) to the same shape; `eps` is the model's `norm_eps`."""


NORMS: Registry[NormKind] = Registry("norm", {"layer_norm": LayerNormKind(), "rms_norm": RmsNormKind()})
"""Every kind of normalisation by its name."""

NormT = TypeVar("NormT", bound=PluginNorm)
ClassT = TypeVar("ClassT")


def register_norm(name: str, *, source: str) -> Callable[[type[NormT]], type[NormT]]:
    """Return a decorator that registers a normalisation; `source` names its publication or author.

    Raise PluginError for a taken name, and for an incomplete class.
    """
    return kind_registrar(NORMS, PluginNorm, name, source)


def kind_registrar(
    registry: Registry[Any], base: type[Any], name: str, source: str
) -> Callable[[type[ClassT]], type[ClassT]]:
    """Return a class decorator that registers an instance of the class in `registry`, under `name`.

    The decorator raises PluginError for an incomplete class.
    """

    def register(cls: type[ClassT]) -> type[ClassT]:
        check_part(contract_faults(cls, base))
        kind: Any = cls()
        kind.source = source
        registry.register(name, kind)
        return cls

    return register
