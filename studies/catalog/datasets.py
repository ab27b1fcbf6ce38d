"""What texts, pairs and treebanks have in common: files, where these come from, and one name space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeVar

from ...diagnostics import nearest
from ...errors import ActivememError


class CorpusError(ActivememError):
    """A corpus that does not exist, or tokens that it cannot be cut into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """A published file: its addresses (the first that answers is used), size and checksum."""

    name: str
    urls: tuple[str, ...]
    size: int | None = None
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A text file under any of its names, by itself or in an archive, which is one of the downloads.

    Only the first `size` bytes are used, all if None; `digest`, such as `md5:…`, is their checksum. A file
    without one is accepted only inside its archive, whose checksum is known.
    """

    names: tuple[str, ...]
    size: int | None = None
    digest: str | None = None
    archive: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """What a model is trained on.

    `home` is its folder in the data folder, unless it is `installed` with this package. `by_hand` says where
    to get the files that cannot be downloaded.
    """

    KIND: ClassVar[str] = "corpus"

    name: str
    title: str
    folder: str
    installed: bool = False
    downloads: tuple[Download, ...] = ()
    manual_instructions: str | None = None
    licence: str
    source: str

    @property
    def sources(self) -> tuple[SourceFile, ...]:
        """The text files that are known by name, each once."""
        return ()


DatasetT = TypeVar("DatasetT", bound=Dataset)

_datasets: dict[str, Dataset] = {}


def register(dataset: DatasetT) -> DatasetT:
    """Add a data set; a name taken by any kind raises ValueError."""
    if dataset.name in _datasets:
        raise ValueError(f"{_datasets[dataset.name].KIND} '{dataset.name}' is already defined")
    _datasets[dataset.name] = dataset
    return dataset


def names(kind: type[Dataset] = Dataset) -> tuple[str, ...]:
    """The sorted names of all data sets of one kind."""
    return tuple(sorted(name for name, each in _datasets.items() if isinstance(each, kind)))


def require(name: str, kind: type[DatasetT]) -> DatasetT:
    """The data set of that kind and name; CorpusError with the nearest name if there is none."""
    found = _datasets.get(name)
    if not isinstance(found, kind):
        raise CorpusError(f"unknown {kind.KIND} '{name}'; nearest: {nearest(name, names(kind), cutoff=0)}")
    return found
