"""How it computes: a block maps (batch, length, width) to the same, from its arguments and its mask alone."""

from .core.block import Block, BuildError, Context, build_block, register_block
from .core.initialisation import Initialisable, Linear
from .core.transducer import State, Transducer
from .layers import (  # each registers its modules
    all_attention,
    attention,
    convolutions,
    feedforward,
    pooling,
    recurrent,
)
from .models.seq2seq_model import TransductionModel, build_transducer
from .models.sequence_model import Model, build
from .transducers import extended_neural_gpu, neural_gpu, seq2seq  # each registers its modules

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
    "all_attention",
    "attention",
    "build",
    "build_block",
    "build_transducer",
    "convolutions",
    "extended_neural_gpu",
    "feedforward",
    "neural_gpu",
    "pooling",
    "recurrent",
    "register_block",
    "seq2seq",
]
