"""Text: a corpus is read once into files of tokens, and every token of a split is scored exactly once."""

from ..corpora import DataError
from .batches import LineBatch, ScoredBatch, StreamBatch
from .lines import line_eval, lines
from .streams import blocks_per_pass, stream_eval, streams
from .text import Split, Text, open_corpus

__all__ = [
    "DataError",
    "LineBatch",
    "ScoredBatch",
    "Split",
    "StreamBatch",
    "Text",
    "blocks_per_pass",
    "line_eval",
    "lines",
    "open_corpus",
    "stream_eval",
    "streams",
]
