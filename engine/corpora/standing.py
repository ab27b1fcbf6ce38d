"""What of each dataset is on this machine: which of its files are here, and whether they are right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ...studies.datasets import Dataset
from ...studies.treebanks import Treebank
from .sources import DataError, check, expected, find, home
from .trees import find_trees, lacking_trees, miscounted, read_treebank


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A dataset in a folder: the files that have it, what is missing, in words, and what is wrong."""

    dataset: Dataset
    place: Path
    files: tuple[Path, ...] = ()
    missing: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether all files that are needed are here."""
        return not self.missing


def standing(dataset: Dataset, folder: Path, *, checked: bool = False) -> Standing:
    """Where a dataset stands in the folder of all data; if `checked`, what is here is read.

    It is held against the checksums, and numbers of sentences, of what was published.
    """
    return standing_in(home(dataset, folder), dataset, checked=checked)


def present(datasets: Iterable[Dataset], folder: Path) -> list[Dataset]:
    """Those of which something is here that is not a part of another one that is here in full."""
    found = [standing(dataset, folder) for dataset in datasets]
    others = {path for each in found if each.complete for path in each.files}
    return [
        each.dataset
        for each in found
        if each.faults or (each.files and (each.complete or not others.issuperset(each.files)))
    ]


def standing_in(place: Path, dataset: Dataset, *, checked: bool = False) -> Standing:
    """Where a dataset stands in a folder of its files alone, as `standing`."""
    if isinstance(dataset, Treebank):
        return _trees(place, dataset, checked)
    found = {source: find(source, place) for source in dataset.sources}
    missing = (f"{expected(source)} in {place}" for source, path in found.items() if path is None)
    return Standing(
        dataset=dataset,
        place=place,
        files=tuple(dict.fromkeys(path for path in found.values() if path)),
        missing=tuple(dict.fromkeys(missing)),
        faults=tuple(_faults(place, dataset)) if checked else (),
    )


def _faults(place: Path, dataset: Dataset) -> Iterator[str]:
    """What is wrong with the texts that are here; an archive without checksums within is read once."""
    seen: set[Path] = set()
    for source in dataset.sources:
        path = find(source, place)
        if path is None or path in seen:
            continue
        if source.digest is None:
            seen.add(path)
        try:
            check(dataset, source, place)
        except DataError as error:
            yield str(error)


def _trees(place: Path, treebank: Treebank, checked: bool) -> Standing:
    try:
        found = find_trees(treebank, place)
        missing = tuple(lacking_trees(treebank, place, found))
        faults = miscounted(treebank, read_treebank(treebank, place)) if checked and found.numbers else []
    except DataError as error:
        return Standing(dataset=treebank, place=place, faults=(str(error),))
    return Standing(dataset=treebank, place=place, files=found.paths, missing=missing, faults=tuple(faults))
