"""What happened: a row is written once, durable the moment its trial ends, and never rewritten."""

from .checkpoint_notes import CheckpointNote
from .paths import StoreError
from .rows import MetricRow, TrialRow
from .store import Store

__all__ = ["CheckpointNote", "MetricRow", "Store", "StoreError", "TrialRow"]
