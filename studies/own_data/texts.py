"""A user's texts: a single file, a file for each split, or documents in Parquet files."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from ..catalog.datasets import CorpusError, HeldOutFractions
from ..catalog.own_corpora import SPLITS, OwnCounts, OwnDocuments, OwnPart, OwnShards, OwnText
from ..text.document import Diagnostics
from ..text.strict_model import StrictModel
from ..text.units import plural
from .files import CORPUS, Reader, parquet_files
from .formats import FaultyValueError, iter_parquet, shown
from .rows import normal_form
from .summary import CorpusSummary, Read, summarise_text

Share = Annotated[float, Field(gt=0, lt=1)]
"""The share of a file that is held out."""


class HeldOut(StrictModel):
    """The shares of lines or pairs to hold out for dev and test."""

    dev: Share = 0.1
    """the share of the dev split"""
    test: Share = 0.1
    """the share of the test split"""

    @model_validator(mode="after")
    def _check_shares(self) -> HeldOut:
        check_shares(self.dev, self.test)
        return self


class _OneText(HeldOut):
    """Schema of `[task] corpus` with one text file, which is cut into train, dev and test in this order."""

    path: str
    """the text file"""


class _ThreeTexts(StrictModel):
    """Schema of `[task] corpus` with a text file for each split."""

    train: str
    """the text file of the train split"""
    dev: str
    """the text file of the dev split"""
    test: str
    """the text file of the test split"""


def check_shares(*given: str | float | None) -> None:
    """Raise ValueError if the shares of dev and test leave nothing to train on. Paths are not shares."""
    if (shares := sum(each for each in given if isinstance(each, float))) >= 1:
        raise ValueError(f"expected dev and test that add up to less than 1, got {shares:g}")


def read_texts(diagnostics: Diagnostics, reader: Reader, table: Mapping[str, Any]) -> Read | None:
    """Return the facts about a text or about documents. None if faults are reported."""
    read = _read_documents if "documents" in table else _read_text
    return read(diagnostics, reader, table)


def _read_text(diagnostics: Diagnostics, reader: Reader, table: Mapping[str, Any]) -> Read | None:
    """Return the facts about a text in one file, or in one for each split."""
    if not {"path", "train"} & table.keys():
        reader.report(
            'expected { path = "my.txt" }, one file each for train, dev and test, or { documents = "shards" }'
        )
        return None
    if "path" not in table:
        named = diagnostics.validate(_ThreeTexts, CORPUS, table)
        digests = [named and reader.read(reader.locate(getattr(named, split)), split) for split in SPLITS]
        if None in digests:
            return None
        whole = {}
        for split, digest in zip(SPLITS, filter(None, digests), strict=True):
            data = reader.content(digest)
            whole[split] = (digest, _first_byte(data), len(data))
        return _facts(reader, whole)
    one = diagnostics.validate(_OneText, CORPUS, table)
    digest = one and reader.read(reader.locate(one.path), "path")
    if one is None or digest is None:
        return None
    data = reader.content(digest)
    shares = (1 - one.dev - one.test, 1 - one.test)
    dev, test = (data.find(b"\n", round(len(data) * share)) + 1 for share in shares)
    if not 0 < dev < test < len(data):
        reader.report(
            f"{one.path}: expected enough lines for the shares dev = {one.dev:g} and test = {one.test:g}, "
            f"got {plural(len(data.splitlines()), 'line')}",
            "path",
        )
        return None
    parts = zip(SPLITS, (_first_byte(data), dev, test), (dev, test, len(data)), strict=True)
    return _facts(reader, {split: (digest, start, stop) for split, start, stop in parts})


def _first_byte(data: bytes) -> int:
    return len(BOM_UTF8) if data.startswith(BOM_UTF8) else 0


def _facts(reader: Reader, splits: Mapping[str, tuple[str, int, int]]) -> Read:
    """Return the facts about a text.

    `splits` has for each split the SHA-256 of its file, and where the split starts and stops in the file.
    """
    texts = {split: reader.content(sha256)[start:stop] for split, (sha256, start, stop) in splits.items()}
    alphabet = set[int]().union(*map(set, texts.values())) - {ord("\n")}
    parts = {
        split: OwnPart(
            sha256=sha256,
            start=start,
            stop=stop,
            lines=texts[split].count(b"\n") + (not texts[split].endswith(b"\n")),
        )
        for split, (sha256, start, stop) in splits.items()
    }
    facts = OwnText(**parts, alphabet=bytes(sorted(alphabet)).hex())
    return facts, summarise_text(texts, reader.tokens or "characters")


_FORM = ".parquet"


class _Source(StrictModel):
    """One source of documents in a mixture.

    It is a file or a folder. `weight` sets its share of the training documents.
    """

    path: str
    """a Parquet file, or a folder of them"""
    weight: float = Field(default=1.0, gt=0)
    """how often training draws from this source, relative to the others"""


class _Documents(StrictModel):
    """Schema of `[task] corpus` with documents.

    `dev` and `test` are other files, or shares of the documents to hold out.
    """

    documents: Annotated[
        list[_Source],
        BeforeValidator(lambda given: [{"path": given}] if isinstance(given, str) else given),
    ]
    """the sources of documents: a Parquet file or a folder of them, or a list of tables"""
    text: str = "text"
    """the column with the texts"""
    dev: str | Share = 0.1
    """the files of the dev split, or its share of the documents"""
    test: str | Share = 0.1
    """the files of the test split, or its share of the documents"""

    @model_validator(mode="after")
    def _check_shares(self) -> _Documents:
        check_shares(self.dev, self.test)
        if not self.documents:
            raise ValueError("expected at least one source of documents, got none")
        return self


TEXT_FORMS: tuple[type[StrictModel], ...] = (_OneText, _ThreeTexts, _Documents)
"""The forms of `[task] corpus` with texts."""


def _read_documents(diagnostics: Diagnostics, reader: Reader, table: Mapping[str, Any]) -> Read | None:
    """Read the user's documents and count their texts and bytes."""
    named = diagnostics.validate(_Documents, CORPUS, table)
    if named is None:
        return None
    held_out = {split: given for split in SPLITS[1:] if isinstance(given := getattr(named, split), str)}
    files = [_digests(reader, source.path, "documents") for source in named.documents]
    of_splits = {split: _digests(reader, path, split) for split, path in held_out.items()}
    if None in files or None in of_splits.values():
        return None
    facts = OwnDocuments(
        column=named.text,
        sources=tuple(
            OwnShards(files=digests or (), weight=source.weight, documents=0, bytes=0)
            for source, digests in zip(named.documents, files, strict=True)
        ),
        dev=of_splits.get("dev") or (),
        test=of_splits.get("test") or (),
        dev_share=0.0 if isinstance(named.dev, str) else named.dev,
        test_share=0.0 if isinstance(named.test, str) else named.test,
        rows=OwnCounts(train=0, dev=0, test=0),
    )
    before, rows, lengths = len(diagnostics.faults), Counter[str](), [Counter[int]() for _ in facts.sources]
    for place, split, text in iter_documents(facts, reader.files.__getitem__, reader.report):
        rows[split] += 1
        if split == "train":
            lengths[place][len(text.encode())] += 1
    if len(diagnostics.faults) > before:
        return None
    lacking = [split for split in SPLITS if not rows[split]]
    lacking += [source.path for source, each in zip(named.documents, lengths, strict=True) if not each]
    if lacking:
        reader.report(
            f"expected documents in every split and from every path, got none for {' and '.join(lacking)}; "
            f"{plural(rows.total(), 'document')} in all"
        )
        return None
    sources = [
        source.model_copy(
            update={"documents": each.total(), "bytes": sum(size * count for size, count in each.items())}
        )
        for source, each in zip(facts.sources, lengths, strict=True)
    ]
    facts = facts.model_copy(update={"sources": tuple(sources), "rows": OwnCounts(**rows)})
    with_ends = Counter({size + 1: count for size, count in sum(lengths, Counter[int]()).items()})
    counts = {split: rows[split] for split in SPLITS}
    return facts, CorpusSummary(unit="document", rows=counts, lengths={"train": {"characters": with_ends}})


def iter_documents(
    facts: OwnDocuments, find: Callable[[str], Path], report: Callable[[str], object]
) -> Iterator[tuple[int, str, str]]:
    """Yield all documents, except blank ones, with the place of their source and their split.

    A file may be large, since it is never in memory as a whole. `find` returns the path of the file with a
    SHA-256; `report` gets a message for each file that cannot be read to its end.
    """
    shares = HeldOutFractions(dev=facts.dev_share, test=facts.test_share)
    parts = [(place, "", source.files) for place, source in enumerate(facts.sources)]
    for place, own_split, files in (*parts, (0, "dev", facts.dev), (0, "test", facts.test)):
        for path in map(find, files):
            for batch in iter_parquet(path, [facts.column]):
                if isinstance(batch, FaultyValueError):
                    report(f"{path}: {batch}")
                    break
                texts = [text for text in batch[0] if text is not None]
                if odd := [text for text in texts if not isinstance(text, str)]:
                    report(f"{path}: column {facts.column}: expected texts, got {shown(odd[0])}")
                    break
                for text in texts:
                    if text.strip():
                        yield place, own_split or shares.split_of(normal_form(text)), text


def _digests(reader: Reader, name: str, key: str) -> tuple[str, ...] | None:
    """Return the SHA-256 of the Parquet files at a path, by file name; None after faults."""
    path = reader.locate(name)
    try:
        files = parquet_files(path) if path.is_dir() else [path]
    except CorpusError as error:
        reader.report(str(error), key)
        return None
    if not files or files[0].suffix.lower() != _FORM:
        got = f"a folder with none of them: {path}" if path.is_dir() else str(path)
        reader.report(f"expected a file that ends in {_FORM}, or a folder with such files, got {got}", key)
        return None
    found = [reader.digest(each, key) for each in files]
    return None if None in found else tuple(filter(None, found))
