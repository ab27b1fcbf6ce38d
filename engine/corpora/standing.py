"""Where each corpus stands on this machine: which of its files are here, and whether they are right."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...studies.corpora import Corpus
from .sources import DataError, find, home, read, sources


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A corpus on this machine: the files that have its texts, whether all are here, what is wrong."""

    corpus: Corpus
    files: tuple[Path, ...]
    complete: bool
    faults: tuple[str, ...] = ()


def standing(corpus: Corpus, folder: Path, *, checked: bool = False) -> Standing:
    """Where a corpus stands; if `checked`, each text that is here is read and held against its checksum."""
    place, texts = home(corpus, folder), sources(corpus)
    files = {source: find(corpus, source, place) for source in texts}
    faults = []
    for source in texts:
        if checked and files[source]:
            try:
                read(corpus, source, place)
            except DataError as error:
                faults.append(str(error))
    return Standing(
        corpus=corpus,
        files=tuple(dict.fromkeys(path for path in files.values() if path)),
        complete=all(files.values()),
        faults=tuple(faults),
    )
