"""Checks of a dataset's local files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ...studies.catalog.datasets import Dataset, Treebank
from .files import DataError, dataset_folder, describe_files, find_file, verify_source
from .treebank_files import describe_missing, find_treebank_files, read_treebank, sentence_count_faults


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    """The files of a dataset that are in a folder, with messages about missing and faulty ones."""

    dataset: Dataset
    folder: Path
    files: tuple[Path, ...] = ()
    missing: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def here(self) -> bool:
        """Return whether all required files are in the data folder."""
        return not self.missing

    @property
    def location(self) -> str:
        """Return where the dataset is, or the command that fetches it."""
        if self.dataset.installed:
            return "part of activemem"
        if self.faults:
            return f"damaged: activemem data check {self.dataset.name}"
        if self.here:
            return str(self.folder)
        if self.files:
            return f"incomplete: activemem data fetch {self.dataset.name}"
        how = "missing" if self.dataset.manual_instructions is None else "manual"
        return f"{how}: activemem data fetch {self.dataset.name}"


def check_availability(dataset: Dataset, folder: Path, *, verify: bool = False) -> Availability:
    """Check which files of a dataset are in the data folder.

    `verify` reads the files and compares checksums and numbers of sentences with the published values.
    """
    return check_folder(dataset_folder(dataset, folder), dataset, verify=verify)


def available_datasets(datasets: Iterable[Dataset], folder: Path) -> list[Dataset]:
    """Return the datasets that have files in the data folder.

    An incomplete dataset is left out if all its files belong to a dataset that is complete.
    """
    found = [check_availability(dataset, folder) for dataset in datasets]
    others = {path for each in found if each.here for path in each.files}
    return [
        each.dataset
        for each in found
        if each.faults or (each.files and (each.here or not others.issuperset(each.files)))
    ]


def check_folder(folder: Path, dataset: Dataset, *, verify: bool = False) -> Availability:
    """Check which files of a dataset are in `folder`, the dataset's own folder."""
    if isinstance(dataset, Treebank):
        return _trees(folder, dataset, verify)
    found = {source: find_file(source, folder) for source in dataset.sources}
    missing = (f"{describe_files(source)} in {folder}" for source, path in found.items() if path is None)
    return Availability(
        dataset=dataset,
        folder=folder,
        files=tuple(dict.fromkeys(path for path in found.values() if path)),
        missing=tuple(dict.fromkeys(missing)),
        faults=tuple(_faults(folder, dataset)) if verify else (),
    )


def _faults(place: Path, dataset: Dataset) -> Iterator[str]:
    """Yield a message for each local file that differs from the published file.

    An archive is checked only once if its files have no checksums of their own.
    """
    seen: set[Path] = set()
    for source in dataset.sources:
        path = find_file(source, place)
        if path is None or path in seen:
            continue
        if source.digest is None:
            seen.add(path)
        try:
            verify_source(dataset, source, place)
        except DataError as error:
            yield str(error)


def _trees(place: Path, treebank: Treebank, checked: bool) -> Availability:
    try:
        found = find_treebank_files(treebank, place)
        missing = tuple(describe_missing(treebank, place, found))
        faults = (
            sentence_count_faults(treebank, read_treebank(treebank, place))
            if checked and found.numbers
            else []
        )
    except DataError as error:
        return Availability(dataset=treebank, folder=place, faults=(str(error),))
    return Availability(
        dataset=treebank, folder=place, files=found.paths, missing=missing, faults=tuple(faults)
    )
