"""How it computes: a block maps (batch, length, width) to the same, from its arguments and its mask alone."""

from . import layers, transducers  # their families register their modules
from .core.block import Block, BuildError, Context, build_block, register_block
from .core.initialisation import Initialisable, Linear
from .core.transducer import State, Transducer
from .models.seq2seq_model import TransductionModel, build_transducer
from .models.sequence_model import Model, build

__all__ = [
    "Block",
    "BuildError",
    "Context",
    "Initialisable",
    "Linear",
    "Model",
    "State",
    "Transducer",
    "TransductionModel",
    "build",
    "build_block",
    "build_transducer",
    "layers",
    "register_block",
    "transducers",
]
