"""Everything that a study file can refer to by name.

`tasks` can be learnt, `metrics` are measured, `published` has the papers' numbers. `corpora`,
`parallel_corpora` and `treebanks` are `datasets`, which all share one name space.
"""

from __future__ import annotations

from .corpora import Corpus
from .datasets import Dataset, names, require
from .parallel_corpora import ParallelCorpus
from .treebanks import Treebank

KINDS: dict[str, type[Dataset]] = {"texts": Corpus, "pairs": ParallelCorpus, "treebanks": Treebank}
"""The kinds, in the order in which they are listed."""


def dataset_names() -> tuple[str, ...]:
    """The names of all data sets, kind by kind."""
    return tuple(name for kind in KINDS.values() for name in names(kind))


def require_dataset(name: str) -> Dataset:
    """The data set of that name; CorpusError with the nearest name of any kind if there is none."""
    return require(name, Dataset)
