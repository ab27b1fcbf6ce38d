"""How it computes: a block maps (batch, length, width) to the same, from its arguments and its mask alone."""

from . import (  # each registers its modules
    all_attention,
    attention,
    cgru,
    convolution,
    extended_neural_gpu,
    feedforward,
    neural_gpu,
    persistent,
    pools,
    recurrent,
    seq2seq,
)
from .block import Block, BuildError, Context, build_block, module
from .initial import Drawn, Linear
from .model import Model, build
from .transducer import State, Transducer
from .transduction import TransductionModel, build_transducer

__all__ = [
    "Block",
    "BuildError",
    "Context",
    "Drawn",
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
    "cgru",
    "convolution",
    "extended_neural_gpu",
    "feedforward",
    "module",
    "neural_gpu",
    "persistent",
    "pools",
    "recurrent",
    "seq2seq",
]
