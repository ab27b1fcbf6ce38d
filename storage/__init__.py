"""A row is written once, durable the moment its trial ends, and never rewritten.

`store` is the whole of it in one class: `rows` go in, checked by `row_validation`, in the columns of
`schema`; `read` gets them out, `follow` keeps up with a store that grows, and `compaction` makes small
files one. `durable_write` survives any crash, `checksum` seals a file, `quarantine` sets a damaged one
aside, `paths` knows all names. `checkpoint_notes` say how far unfinished trials are, `study_records` what a
study was when it last ran.
"""

from .checkpoint_notes import CheckpointNote
from .paths import StoreError
from .rows import MetricRow, TrialRow, WrittenOutputs
from .store import Store

__all__ = ["CheckpointNote", "MetricRow", "Store", "StoreError", "TrialRow", "WrittenOutputs"]
