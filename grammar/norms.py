"""Kinds of normalisation by the names that `norm_kind` takes, including kinds of plug-ins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ..plugins import Registry, contract_faults

if TYPE_CHECKING:
    from torch import nn


class NormKind:
    """A map of each vector of a sequence to one of the same width; `source` names its author."""

    source = ""


class LayerNormKind(NormKind):
    """The vector less its mean, divided by its deviation, with a gain and an offset for each channel."""

    source = "Ba, Kiros and Hinton 2016"


class RmsNormKind(NormKind):
    """The vector divided by its root mean square, with a gain for each channel."""

    source = "Zhang and Sennrich 2019"


class PluginNorm(NormKind, ABC):
    """A normalisation of a plug-in."""

    @abstractmethod
    def build(self, width: int, eps: float) -> nn.Module:
        """Return the module, (…, width) to the same; `eps` is the `norm_eps` of the model."""


NORMS: Registry[NormKind] = Registry("norm", {"layer_norm": LayerNormKind(), "rms_norm": RmsNormKind()})
"""Every kind of normalisation by its name."""

NormT = TypeVar("NormT", bound=PluginNorm)


def register_norm(name: str, *, source: str) -> Callable[[type[NormT]], type[NormT]]:
    """Return a decorator that adds a kind of normalisation; `source` names its author.

    Raises ValueError for a taken name, and for a class that lacks something.
    """

    def register(cls: type[NormT]) -> type[NormT]:
        if faults := contract_faults(cls, PluginNorm):
            raise ValueError("; ".join(faults))
        kind = cls()
        kind.source = source
        NORMS.register(name, kind)
        return cls

    return register
