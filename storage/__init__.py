"""What happened: a row is written once, durable the moment its trial ends, and never rewritten."""

from .schema import MetricRow, StoreError, TrialRow
from .store import Store

__all__ = ["MetricRow", "Store", "StoreError", "TrialRow"]
