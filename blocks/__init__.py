"""Torch modules of all blocks, and the models that are built from them.

A block maps (batch, length, width) to the same shape; it uses only its arguments and its mask.

- `core` has the parts of every block.
- `layers` has one file for each family of blocks.
- `transducers` map a source to a target.
- `models` builds whole models.
- `testing` checks the contract that every block keeps.
"""

from . import layers, transducers  # their families register their modules
from .core.block import Block, BuildError, Context, build_block, register_block
from .core.initialisation import Embedding, Initialisable, Linear
from .core.transducer import State, Transducer
from .models.model import Model, TransductionModel, build

__all__ = [
    "Block",
    "BuildError",
    "Context",
    "Embedding",
    "Initialisable",
    "Linear",
    "Model",
    "State",
    "Transducer",
    "TransductionModel",
    "build",
    "build_block",
    "layers",
    "register_block",
    "transducers",
]
