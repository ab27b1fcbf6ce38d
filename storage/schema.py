"""The datasets: their columns, the version of these, and the order of their rows."""

from typing import Final

from .rows import METRICS, OUTPUTS, TAKEN, TRIALS

SCHEMA_VERSION: Final = 2
"""The version that is written; 2 added columns for where a trial ran, which are null in files of 1."""

READ_VERSIONS: Final = (1, 2)
"""The versions that can be read."""

SCHEMAS: Final = {
    "trials": TRIALS,
    "metrics": METRICS,
    "probes": METRICS,
    "tuning": METRICS,
    "outputs": OUTPUTS,
    "tuned_outputs": OUTPUTS,
    "taken": TAKEN,
}
MEASURED_LATER: Final = ("probes", "tuning")
_BY_STEP: Final = ("trial", "attempt", "step", "epoch", "name")
_BY_LINE: Final = ("trial", "attempt", "line")
SORT_KEYS: Final = {
    "trials": ("trial", "attempt"),
    "metrics": _BY_STEP,
    **dict.fromkeys(MEASURED_LATER, _BY_STEP),
    "outputs": _BY_LINE,
    "tuned_outputs": _BY_LINE,
    "taken": ("trial", "attempt"),
}
