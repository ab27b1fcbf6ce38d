"""Corpora, read once into files of tokens; every token of a split is scored exactly once.

`text` is for language models, `pairs` for translation, `trees` for parsing, `labelled` for sequences with
labels. `own_rows` reads files of the user's own, `vocabularies` number the symbols of sentences, and
`token_files` keep the numbers. `prepared_lengths` says how long sequences are.
"""

from ..corpora import DataError
from .labelled.corpus import LabelledCorpus, open_labelled
from .pairs.batches import PairBatch, iter_pair_batches, iter_pair_eval
from .pairs.corpus import PairSplit, ParallelText, open_pairs
from .text.batches import (
    LineBatch,
    ScoredBatch,
    StreamBatch,
    blocks_per_pass,
    iter_line_batches,
    iter_line_eval,
    iter_stream_batches,
    iter_stream_eval,
)
from .text.corpus import TokenisedCorpus, open_corpus
from .token_files import Split
from .trees.corpus import gold_trees, open_treebank

__all__ = [
    "DataError",
    "LabelledCorpus",
    "LineBatch",
    "PairBatch",
    "PairSplit",
    "ParallelText",
    "ScoredBatch",
    "Split",
    "StreamBatch",
    "TokenisedCorpus",
    "blocks_per_pass",
    "gold_trees",
    "iter_line_batches",
    "iter_line_eval",
    "iter_pair_batches",
    "iter_pair_eval",
    "iter_stream_batches",
    "iter_stream_eval",
    "open_corpus",
    "open_labelled",
    "open_pairs",
    "open_treebank",
]
