"""Text: a corpus is read once into files of tokens, and every token of a split is scored exactly once."""

from ..corpora import DataError
from .batches import LineBatch, ScoredBatch, StreamBatch
from .lines import line_eval, lines
from .pair_batches import PairBatch, pair_batches, pair_eval
from .pairs import PairSplit, ParallelText, open_pairs
from .splits import Split
from .streams import blocks_per_pass, stream_eval, streams
from .text import Text, open_corpus
from .treebanks import open_treebank, trees_of

__all__ = [
    "DataError",
    "LineBatch",
    "PairBatch",
    "PairSplit",
    "ParallelText",
    "ScoredBatch",
    "Split",
    "StreamBatch",
    "Text",
    "blocks_per_pass",
    "line_eval",
    "lines",
    "open_corpus",
    "open_pairs",
    "open_treebank",
    "pair_batches",
    "pair_eval",
    "stream_eval",
    "streams",
    "trees_of",
]
