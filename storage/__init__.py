"""What happened: a row is written once, durable the moment its trial ends, and never rewritten."""

from .layout import StoreError
from .progress import Reached
from .rows import MetricRow, TrialRow
from .store import Store

__all__ = ["MetricRow", "Reached", "Store", "StoreError", "TrialRow"]
