"""Study records: JSON files, each with a study as it last ran."""

from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field

from .checksums import Record, decode_record, encode_record
from .errors import DamagedError, StoreError, UnreadableError
from .files import read_regular
from .place import entries, study_name_fault
from .read import Quarantine

RECORD_VERSION: Final = 1

_NEXT_STEP: Final = "run the study again from its file to rewrite its record"


class _OwnCorpus(Record):
    """Schema of a record's facts about the user's data files, and of the tables that name these files."""

    written: str
    facts: dict[str, Any] | None = None
    tokenizer: dict[str, Any] | None = None
    pieces: int | None = None
    starts: dict[str, str] = Field(default_factory=dict[str, str])


class _SealedPart(BaseModel):
    """Base class of what a seal covers."""

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True, frozen=True, extra="forbid")


class _SealedClaim(_SealedPart):
    """Schema of a claim below a seal: its name, what it tests in which cells, and when a run recorded it."""

    name: str
    test: str
    cells: list[str]
    stated: str = ""


class _SealedTrial(_SealedPart):
    """Schema of a trial below a seal. It is `gone` if the store had lost its row by then."""

    trial: str
    cell: str
    seed: int
    study: str
    status: str
    finished: str
    values: dict[str, float | str | None]
    gone: bool = False


class _Seal(_SealedPart):
    """Schema of a seal, with the claims and trials that it covers."""

    seal: str
    claims: list[_SealedClaim]
    trials: list[_SealedTrial]


class StudyRecord(BaseModel):
    """A study as it last ran.

    It has the study's text, its overrides, and data on the run, such as its time. `published` has the text of
    each file of published numbers that the study names. `seeds_before` are the seeds for which there were
    results before the text got other seeds. `stated` has the time at which a run first recorded each claim,
    and `seal` the claims and trials of `studies/evidence.py`, with their seal. `other_paths` are other files
    with the same name that have run in this store.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True, frozen=True, extra="allow")

    text: str
    overrides: list[str] = Field(default_factory=list[str])
    path: str | None = None
    own_corpus: _OwnCorpus | None = None
    published: dict[str, str] = Field(default_factory=dict[str, str])
    run: str | None = None
    seeds_before: list[int] = Field(default_factory=list[int])
    stated: dict[str, str] = Field(default_factory=dict[str, str])
    seal: _Seal | None = None
    other_paths: list[str] = Field(default_factory=list[str])


class _Page(Record):
    """Schema of the JSON file of a study record."""

    schema_: int
    remembered: str
    record: StudyRecord

    model_config: ClassVar[ConfigDict] = ConfigDict(alias_generator=lambda name: name.rstrip("_"))


class StudyRecords:
    """The records of a store's studies."""

    def __init__(self, quarantine: Quarantine) -> None:
        self._layout, self._quarantine = quarantine.layout, quarantine

    def save(self, name: str, record: Mapping[str, Any]) -> None:
        """Write the record of a study, as the latest record. It replaces the study's previous record."""
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        page = {"schema": RECORD_VERSION, "remembered": now, "record": dict(record)}
        self._layout.place.put(self._layout.study(name), encode_record(page, indent=2))

    def load(self, name: str) -> dict[str, Any] | None:
        """Return the record of a study, or None if there is none.

        Raise `StoreError` for an unknown version. The record has the key `text`, and those other keys of
        `StudyRecord` that were saved.
        """
        path = self._layout.study(name)
        self._layout.place.fetch(path)
        page = self._read(path)
        return None if page is None else page.record.model_dump(exclude_unset=True)

    def find_damaged(self, name: str) -> Path | None:
        """Return the path of a study's damaged record in quarantine, or None."""
        folder = self._layout.quarantine / "studies"
        self._layout.place.list(folder)
        found = [path for path in entries(folder) if path.name.startswith(f"{name}.json")]
        return found[-1] if found else None

    def latest(self) -> str | None:
        """Return the name of the most recently recorded study."""
        times = {name: page.remembered for name, page in self._pages()}
        return max(times, key=lambda name: times[name], default=None)

    def names(self) -> list[str]:
        """Return the names of all recorded studies."""
        return [name for name, _ in self._pages()]

    def readable(self) -> dict[str, dict[str, Any]]:
        """Return all records by study, without those of another version."""
        pages = self._pages(skip_versions=True)
        return {name: page.record.model_dump(exclude_unset=True) for name, page in pages}

    def _pages(self, *, skip_versions: bool = False) -> Iterator[tuple[str, _Page]]:
        self._layout.place.list(self._layout.studies, contents=True)
        for path in entries(self._layout.studies, ".json"):
            with suppress(StoreError) if skip_versions else nullcontext():
                if study_name_fault(path.stem) is None and (page := self._read(path)):
                    yield path.stem, page

    def _read(self, path: Path) -> _Page | None:
        """Return a page, or None if it is missing; move a damaged file to quarantine."""
        try:
            return read_page(path)
        except FileNotFoundError:
            return None
        except DamagedError as error:
            self._quarantine.move(path, f"it is not a study record: {error}", _NEXT_STEP)
        except UnreadableError as error:
            self._quarantine.leave(path, str(error))
        return None


def read_page(path: Path) -> _Page:
    """Return the contents of a study record's file.

    They are the record, its version and the time of writing. Raise `FileNotFoundError`, `UnreadableError`,
    `DamagedError`, and `StoreError` for an unknown version.
    """
    page = decode_record(read_regular(path), _Page)
    if page.schema_ != RECORD_VERSION:
        raise StoreError(f"{path}: expected schema {RECORD_VERSION}, got {page.schema_}")
    return page
