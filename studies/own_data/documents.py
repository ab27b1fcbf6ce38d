"""Documents in Parquet files: a column of texts, from one source or from a weighted mixture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from ..catalog.datasets import CorpusError, HeldOutFractions
from ..catalog.own_corpora import SPLITS, OwnCounts, OwnDocuments, OwnShards
from ..text.document import Diagnostics
from ..text.strict_model import StrictModel
from ..text.units import plural
from .cells import RowsError, max_bytes, missing_column, too_large
from .reader import CORPUS, Reader
from .summary import CorpusSummary
from .texts import Share, check_shares

_BATCH_ROWS = 256  # that become Python values at a time
_FORM = ".parquet"


class _Source(StrictModel):
    """A file or folder of documents, and its share of a mixture."""

    path: str
    weight: float = Field(default=1.0, gt=0)


def _as_list(given: object) -> object:
    return [{"path": given}] if isinstance(given, str) else given


class _Documents(StrictModel):
    """Documents for training, and the splits: files of their own, or shares of the documents."""

    documents: Annotated[list[_Source], BeforeValidator(_as_list)]
    text: str = "text"
    """the column"""
    dev: str | Share = 0.1
    test: str | Share = 0.1

    @model_validator(mode="after")
    def _check_shares(self) -> _Documents:
        check_shares(*(each if isinstance(each, float) else 0.0 for each in (self.dev, self.test)))
        if not self.documents:
            raise ValueError("expected at least one source of documents, got none")
        return self


def read_own_documents(
    diagnostics: Diagnostics, reader: Reader, table: Mapping[str, Any]
) -> OwnDocuments | None:
    """Return the facts about documents; None if faults are reported."""
    named = diagnostics.validate(_Documents, CORPUS, table)
    if named is None:
        return None
    sources = named.documents
    held_out = {split: given for split in SPLITS[1:] if isinstance(given := getattr(named, split), str)}
    files = [_digests(reader, source.path, "documents") for source in sources]
    of_splits = {split: _digests(reader, path, split) for split, path in held_out.items()}
    shares = {split: getattr(named, split) for split in SPLITS[1:] if split not in held_out}
    if None in files or None in of_splits.values():
        return None
    drawn = HeldOutFractions(dev=shares.get("dev", 0.0), test=shares.get("test", 0.0))
    counts, found, sound = Counter[str](), list[OwnShards](), True
    for source, digests in zip(sources, files, strict=True):
        documents, size = Counter[str](), 0
        for text in _texts(reader, digests or (), named.text, "documents"):
            if text is None:
                sound = False
                continue
            split = drawn.split_of(text)
            documents[split] += 1
            size += len(text.encode()) if split == "train" else 0
        counts += documents
        found.append(
            OwnShards(files=digests or (), weight=source.weight, documents=documents["train"], bytes=size)
        )
    for split, digests in of_splits.items():
        for text in _texts(reader, digests or (), named.text, split):
            sound = sound and text is not None
            counts[split] += text is not None
    if not sound:
        return None
    rows = {split: counts[split] for split in SPLITS}
    lacking = [split for split, count in rows.items() if not count]
    lacking += [source.path for source, each in zip(sources, found, strict=True) if not each.documents]
    if lacking:
        reader.report(
            f"expected documents in every split and source, got none in {' and '.join(lacking)} of "
            f"{plural(sum(rows.values()), 'document')}"
        )
        return None
    reader.summary = CorpusSummary(unit="document", rows=rows, train_bytes=sum(each.bytes for each in found))
    return OwnDocuments(
        column=named.text,
        sources=tuple(found),
        dev=of_splits.get("dev") or (),
        test=of_splits.get("test") or (),
        dev_share=drawn.dev,
        test_share=drawn.test,
        rows=OwnCounts(**rows),
    )


def iter_documents(path: Path, column: str) -> Iterator[str]:
    """Yield the texts of a Parquet file, batch by batch; blank ones are left out.

    Raise RowsError for an invalid file, and CorpusError if its texts exceed the size limit.
    """
    import pyarrow as pa  # noqa: PLC0415 -- loads slowly
    import pyarrow.parquet as pq  # noqa: PLC0415

    size, limit = 0, max_bytes()
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            if schema.names.count(column) != 1:
                raise RowsError([missing_column(column, schema.names)])
            kind = schema.field(column).type
            if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
                raise RowsError([f"column {column}: expected texts, got {kind}"])
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=[column]):
                size += batch.nbytes
                if size > limit:
                    raise RowsError([too_large("its texts")])
                batch.validate(full=True)
                yield from (text for text in batch.column(0).to_pylist() if text and text.strip())
    except RowsError:
        raise
    except MemoryError as error:
        raise RowsError([too_large("its texts")]) from error
    except Exception as error:  # a damaged file can raise anything
        raise RowsError([f"expected Parquet, got: {type(error).__name__}: {error}"[:200]]) from error


def _digests(reader: Reader, name: str, key: str) -> tuple[str, ...] | None:
    """Return the SHA-256 of the Parquet files of a path, in order of their names."""
    path = reader.locate(name)
    files = sorted(path.rglob(f"*{_FORM}")) if path.is_dir() else [path]
    if not files or files[0].suffix.lower() != _FORM:
        got = f"a folder with none of them: {path}" if path.is_dir() else str(path)
        reader.report(f"expected a file that ends in {_FORM}, or a folder with such files, got {got}", key)
        return None
    found = [reader.digest(each, key) for each in files]
    digests = tuple(each for each in found if each is not None)
    return digests if len(digests) == len(found) else None


def _texts(reader: Reader, digests: tuple[str, ...], column: str, key: str) -> Iterator[str | None]:
    """Yield the documents of files; None for one that cannot be read, which is reported."""
    for digest in digests:
        path = reader.files[digest]
        try:
            yield from iter_documents(path, column)
        except CorpusError as error:
            reader.report(f"{path}: {error}", key)
            yield None
