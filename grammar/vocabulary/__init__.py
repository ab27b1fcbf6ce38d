"""Every block is data: parameters, role, cost, reach and source; the file names are those of `blocks`."""

from . import (  # each registers its blocks
    all_attention,
    attention,
    convolutions,
    feedforward,
    neural_gpu,
    pooling,
    recurrent,
)

__all__ = ["all_attention", "attention", "convolutions", "feedforward", "neural_gpu", "pooling", "recurrent"]
