"""Probes: measurements of trained models from the weights that their study kept.

`study_probes` probes the encoders of a study, `encoders` opens its models, `memory_change` measures their
memory, and `comparison_groups` says which of them can be compared. `registered_probes` runs those of
plug-ins, which `conformance` checks. `tuning` chooses how translating models search for outputs.
`trained_models` loads the models; `coordinates` trains some of several widths for a few steps.
"""

from .encoders import NO_ENCODER, EncoderProbe
from .memory_change import MemoryStatistics, measure_memory, memory_changes, quantiles, theta
from .registered_probes import run_registered_probes
from .study_probes import ProbeResult, probe_study
from .trained_models import ProbeError
from .tuning import NO_TRANSLATION, tune_study

__all__ = [
    "NO_ENCODER",
    "NO_TRANSLATION",
    "EncoderProbe",
    "MemoryStatistics",
    "ProbeError",
    "ProbeResult",
    "measure_memory",
    "memory_changes",
    "probe_study",
    "quantiles",
    "run_registered_probes",
    "theta",
    "tune_study",
]
