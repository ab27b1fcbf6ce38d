"""The normalisation of a model, by its name."""

from __future__ import annotations

from torch import nn

from ...grammar.model_config import ModelConfig
from ...grammar.norms import NORMS, PluginNorm
from .block import told_by_name
from .weight_roles import WeightRole, declare_role


def build_norm(config: ModelConfig) -> nn.Module:
    """Build a normalisation of vectors as wide as the model, (…, width) to the same."""
    kind = NORMS[config.norm_kind]
    if isinstance(kind, PluginNorm):
        with told_by_name(NORMS, config.norm_kind):
            made = kind.build(config.d_model, config.norm_eps)
            declare_role(made, WeightRole.NORM)
            return made
    made = nn.RMSNorm if config.norm_kind == "rms_norm" else nn.LayerNorm
    return made(config.d_model, eps=config.norm_eps)


def build_final_norm(config: ModelConfig) -> nn.Module | None:
    """Build the norm behind a stack, which only pre-norm has."""
    return build_norm(config) if config.norm == "pre" else None
