"""What is measured inside of trained models, from the weights that studies keep."""

from .encoders import NO_ENCODER, Encoder, ProbeError
from .memory import Memory, changes, measure, quantiles, theta
from .probing import Probed, probe_study

__all__ = [
    "NO_ENCODER",
    "Encoder",
    "Memory",
    "ProbeError",
    "Probed",
    "changes",
    "measure",
    "probe_study",
    "quantiles",
    "theta",
]
