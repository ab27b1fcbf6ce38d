"""Texts of one's own as a trial knows them: by the SHA-256 of their content, wherever their files are."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from pydantic import BaseModel, ConfigDict, ValidationError

from .datasets import Corpus, FileSlice, SourceFile

FOLDER = "own"
"""The folder of files of one's own, below that of all data, each under its SHA-256."""


def own_source(sha256: str) -> SourceFile:
    """The file of that content, as it is kept in the folder of data."""
    return SourceFile(names=(sha256,), digest=f"sha256:{sha256}")


class _Facts(BaseModel):
    """What a trial's settings have of files: no table of a study file, which only names them."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", use_attribute_docstrings=True)


class OwnPart(_Facts):
    """One split: bytes `start` to `stop` of the file of that content, and the number of their lines."""

    sha256: str
    start: int
    stop: int
    lines: int


class OwnText(_Facts):
    """A text in three splits; `alphabet` has all its bytes except line ends, in hexadecimal digits."""

    train: OwnPart
    dev: OwnPart
    test: OwnPart
    alphabet: str

    @property
    def parts(self) -> Mapping[str, OwnPart]:
        """The splits by name."""
        return {"train": self.train, "dev": self.dev, "test": self.test}

    @property
    def name(self) -> str:
        """What messages and folders call it: the beginning of a hash of all that it is."""
        return own_name(self)

    @property
    def dataset(self) -> Corpus:
        """The corpus whose files are those of this content."""
        return Corpus(
            name=self.name,
            title="a text of one's own",
            folder=FOLDER,
            own=True,
            licence="unknown",
            source="a file that a study names",
            splits={
                name: FileSlice(source=own_source(part.sha256), start=part.start, stop=part.stop)
                for name, part in self.parts.items()
            },
            alphabet=bytes.fromhex(self.alphabet),
        )


def own_name(facts: BaseModel) -> str:
    """A name for a corpus of one's own: the beginning of a hash of all that is known of it."""
    return f"own-{hashlib.sha256(facts.model_dump_json().encode()).hexdigest()[:12]}"


def read_facts(kind: type[BaseModel]) -> Callable[[object], object]:
    """What makes facts of this kind of a table, leaves names as they are, and refuses anything else."""

    def read(corpus: object) -> object:
        if isinstance(corpus, str | kind):
            return corpus
        if not isinstance(corpus, Mapping):
            raise ValueError(f"expected the name of a corpus, or a table of files, got {corpus!r}")
        try:
            return kind.model_validate(corpus)
        except ValidationError:
            raise ValueError("a table of files needs the name of a task in [task], not a hole") from None

    return read
