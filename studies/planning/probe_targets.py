"""Recipes with a recurrent encoder, whose memory probes can measure."""

from __future__ import annotations

from ...grammar import nodes
from ...grammar.seq2seq import is_recurrent
from ...grammar.vocabulary.registry import spec_of
from ...grammar.vocabulary.spec import Settings as Arguments
from ..schema.settings import read_recipe
from ..text.command_line import command_line


def encoder_arguments(recipe: str) -> Arguments | None:
    """Return the arguments of a recurrent encoder in an encoder-decoder; None for any other model."""
    root = read_recipe(recipe).root
    if not isinstance(root, nodes.BlockNode) or root.name != "seq2seq":
        return None
    arguments = spec_of(root.name).settings(root)
    return arguments if is_recurrent(arguments["encoder"]) else None


def probe_command(study: str) -> str:
    """Return the command that probes the models of a study."""
    return command_line("probe", "run", study)
