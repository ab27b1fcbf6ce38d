"""A corpus of a few hundred short lines, for language models that train within seconds."""

import hashlib
from contextlib import contextmanager

import torch

from activemem import Corpus, FileSlice, SourceFile, register_dataset
from activemem.studies.catalog import datasets

WORDS = ("the", "a", "cat", "dog", "tree", "sees", "likes", "old", "small", "and", "house", "by")


def text_of_lines() -> bytes:
    """Return 300 lines of seeded random words, every twentieth empty."""
    generator = torch.Generator().manual_seed(0)
    lines = []
    for number in range(300):
        count = 0 if number % 20 == 0 else int(torch.randint(1, 12, (), generator=generator))
        drawn = torch.randint(len(WORDS), (count,), generator=generator).tolist()
        lines.append(" ".join(WORDS[place] for place in drawn))
    return ("\n".join(lines) + "\n").encode()


@contextmanager
def tiny_corpus(folder):
    """Register the corpus `tiny` in a data folder within a context."""
    whole = text_of_lines()
    digest = f"sha256:{hashlib.sha256(whole).hexdigest()}"
    source = SourceFile(names=("tiny.txt",), size=len(whole), digest=digest)
    ends = [whole.index(b"\n", len(whole) * share // 10) + 1 for share in (6, 8)]
    register_dataset(
        Corpus(
            name="tiny",
            title="300 lines of words",
            folder="tiny",
            downloads=(),
            splits={
                "train": FileSlice(source=source, stop=ends[0]),
                "dev": FileSlice(source=source, start=ends[0], stop=ends[1]),
                "test": FileSlice(source=source, start=ends[1]),
            },
            alphabet=bytes(sorted(set(whole) - {10})),
            word_vocab_size=len(WORDS) + 1,
            licence="none",
            source="made here",
        )
    )
    (folder / "tiny").mkdir()
    (folder / "tiny" / "tiny.txt").write_bytes(whole)
    yield
    datasets.all_datasets().unregister("tiny")
