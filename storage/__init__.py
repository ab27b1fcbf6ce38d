"""A row is written once, durable before its trial is told as ended, and never rewritten.

`store` is all of it in one class: `rows` are written to the datasets of `schema`, checked by
`row_validation`; `read` reads them, `latest_attempts` says which attempt at a trial counts and keeps up with
a growing store, `leases` say who trains the next one, and `compaction` merges small files. `durable_write`
survives any crash, `integrity` finds damaged files and moves them away, `salvage` keeps what is intact of
them, `paths` has all names, and `processes` says whether the writer of a file still runs. `checkpoint_notes`
say how far unfinished trials are, `study_records` what a study was when it last ran, and `state` what the
store has by name, so that changes are seen. `upkeep` tells all that is wrong with a store, and mends what can
be mended. `objects` put a store into a bucket.
"""

from .checkpoint_notes import CheckpointNote
from .paths import StoreError
from .rows import AttemptRows, MetricRow, TrialRow, WrittenOutputs
from .state import StoreState
from .store import Store

__all__ = [
    "AttemptRows",
    "CheckpointNote",
    "MetricRow",
    "Store",
    "StoreError",
    "StoreState",
    "TrialRow",
    "WrittenOutputs",
]
