"""The store: rows are written once, durable before a trial counts as ended, and never rewritten.

`place` is where files are: a folder, or a bucket by `bucket_place` and `bucket`. `paths` names all files, and
`durable_write` makes local writes survive crashes. `store` has the rows, `trial_files` what trials keep
beside them, `study_records` the studies that have run, and `upkeep` checks, merges and removes.

`rows` says what a row is; `parquet_file` encodes rows with checksums; `read`, `latest_attempts` and `state`
read them; `compaction` merges small files. `leases` decide who trains a trial. `checkpoint_notes` are records
beside checkpoints. `integrity` finds damaged files, and `quarantine` moves them away. `processes` checks
whether the writer of a file still runs.
"""

from .checkpoint_notes import CheckpointNote
from .errors import StoreError
from .rows import AttemptRows, MetricRow, TrialRow, WrittenOutputs
from .state import StoreState
from .store import Store, open_store, store_fault

__all__ = [
    "AttemptRows",
    "CheckpointNote",
    "MetricRow",
    "Store",
    "StoreError",
    "StoreState",
    "TrialRow",
    "WrittenOutputs",
    "open_store",
    "store_fault",
]
