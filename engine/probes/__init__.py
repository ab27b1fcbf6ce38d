"""What is measured inside of trained models, from the weights that studies keep."""

from .encoders import NO_ENCODER, EncoderProbe, ProbeError
from .memory_change import MemoryStatistics, measure_memory, memory_changes, quantiles, theta
from .run import ProbeResult, probe_study

__all__ = [
    "NO_ENCODER",
    "EncoderProbe",
    "MemoryStatistics",
    "ProbeError",
    "ProbeResult",
    "measure_memory",
    "memory_changes",
    "probe_study",
    "quantiles",
    "theta",
]
