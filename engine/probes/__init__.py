"""A probe measures the inside of a trained model from the weights that its study kept.

`study_probes` probes a study, `encoders` opens its models, `memory_change` measures their memory, and
`comparison_groups` says which of them can be compared.
"""

from .encoders import NO_ENCODER, EncoderProbe, ProbeError
from .memory_change import MemoryStatistics, measure_memory, memory_changes, quantiles, theta
from .study_probes import ProbeResult, probe_study

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
