"""What is measured as recorded is replayed from recordings; where it is not, the reason is raised."""

from __future__ import annotations

from activemem.engine.graphs.recorded_gradients import RecordedGradients
from activemem.engine.packs.graphed_passes import GraphedPasses

NOTHING = "nothing is recorded: it cannot be, or a recording broke before"


def require_recordings(work: object) -> None:
    """RuntimeError where the gradients or passes of the steps just taken were not replayed."""
    is_graphed = isinstance(work, RecordedGradients | GraphedPasses)
    if is_graphed and work.reason is not None:
        raise RuntimeError(work.reason)
    if not is_graphed or not len(work):
        raise RuntimeError(NOTHING)
