"""Corpora from a server and from folders: complete, interrupted, or wrong."""

import hashlib
import io
import lzma
import tarfile
import tracemalloc
import zipfile

import pytest

from activemem import Corpus, FileSlice, SourceFile
from activemem.engine import DataError, check_availability, copy_from, fetch
from activemem.engine.corpora import download
from activemem.engine.corpora.files import dataset_folder, read_source
from activemem.studies.catalog.datasets import Download

from .http_host import HttpHost, serve

TEXT = b"one two\nthree\n" * 100_000  # several reads of a download
SPLITS = ("train", "dev", "test")


def digest(data, rule="sha256"):
    return f"{rule}:{hashlib.new(rule, data).hexdigest()}"


def zipped(data=TEXT, name="inner/text"):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(name), data)
    return file.getvalue()


PUBLISHED = zipped()


def corpus(*urls, published=PUBLISHED, name="text.zip", size=None):
    source = SourceFile(
        names=("text", "inner/text"), size=len(TEXT), digest=digest(TEXT, "md5"), archive=name
    )
    return Corpus(
        name="verses",
        title="two lines, often",
        folder="verses",
        downloads=(Download(name=name, urls=urls, size=size, digest=digest(published)),),
        splits={
            split: FileSlice(source=source, start=place, stop=place + 1) for place, split in enumerate(SPLITS)
        },
        alphabet=b"",
        licence="none",
        source="made here",
    )


def silent(name, size, whole):
    """Ignore progress."""


@pytest.fixture
def host():
    with serve(HttpHost({"/text.zip": PUBLISHED})) as running:
        yield running


def test_a_corpus_is_fetched_once_and_its_progress_reported(host, tmp_path):
    told, asked = [], corpus(f"{host.address}/text.zip")
    (file,) = fetch(asked, tmp_path, lambda *each: told.append(each))
    assert file == tmp_path / "verses" / "text.zip"
    assert file.read_bytes() == PUBLISHED
    assert told[-1] == ("text.zip", len(PUBLISHED), len(PUBLISHED))
    assert [size for _, size, _ in told] == sorted({size for _, size, _ in told})
    assert fetch(asked, tmp_path, silent) == [file]
    assert host.requests == [("/text.zip", None)]
    assert read_source(asked, asked.splits["train"].source, dataset_folder(asked, tmp_path)) == TEXT


def test_a_download_that_broke_off_continues_where_it_stopped(host, tmp_path, golden):
    asked = corpus(f"{host.address}/text.zip")
    host.byte_limit = 300_000
    with pytest.raises(DataError) as caught:
        fetch(asked, tmp_path, silent)
    golden(str(caught.value).replace(host.address, "HOST"))
    assert not check_availability(asked, tmp_path).here
    host.byte_limit = None
    (file,) = fetch(asked, tmp_path, silent)
    assert file.read_bytes() == PUBLISHED
    assert host.requests == [("/text.zip", None), ("/text.zip", "bytes=300000-")]


def test_a_host_that_gives_no_parts_gives_all_again(host, tmp_path):
    asked = corpus(f"{host.address}/text.zip")
    host.byte_limit, host.supports_ranges = 300_000, False
    with pytest.raises(DataError):
        fetch(asked, tmp_path, silent)
    host.byte_limit = None
    (file,) = fetch(asked, tmp_path, silent)
    assert file.read_bytes() == PUBLISHED


def test_a_download_that_was_whole_but_not_yet_in_its_place_is_not_fetched_again(host, tmp_path):
    asked = corpus(f"{host.address}/text.zip")
    (tmp_path / "verses").mkdir()
    (tmp_path / "verses" / ".text.zip.part").write_bytes(PUBLISHED)
    (file,) = fetch(asked, tmp_path, silent)
    assert file.read_bytes() == PUBLISHED
    assert host.requests == [("/text.zip", f"bytes={len(PUBLISHED)}-")]


def test_the_next_address_is_asked_where_one_has_not_the_file(host, tmp_path):
    host.files["/wrong.zip"] = b"something else"
    asked = corpus(*(f"{host.address}/{name}.zip" for name in ("none", "wrong", "text")))
    (file,) = fetch(asked, tmp_path, silent)
    assert file.read_bytes() == PUBLISHED
    assert [path for path, _ in host.requests] == ["/none.zip", "/wrong.zip", "/text.zip"]


def test_a_file_that_is_not_the_published_one_is_not_kept(host, tmp_path, golden):
    host.files["/text.zip"] = b"another"
    asked = corpus(f"{host.address}/text.zip", f"{host.address}/none.zip")
    with pytest.raises(DataError) as caught:
        fetch(asked, tmp_path, silent)
    golden(str(caught.value).replace(host.address, "HOST"))
    assert [path.suffix for path in (tmp_path / "verses").iterdir()] == [".lock"]


def test_a_file_that_was_damaged_later_is_fetched_again(host, tmp_path):
    asked = corpus(f"{host.address}/text.zip")
    (file,) = fetch(asked, tmp_path, silent)
    file.write_bytes(PUBLISHED[:-1])
    fetch(asked, tmp_path, silent)
    assert file.read_bytes() == PUBLISHED


def test_a_length_that_is_no_number_is_of_no_account(host, tmp_path):
    host.content_length = "many"
    (file,) = fetch(corpus(f"{host.address}/text.zip"), tmp_path, silent)
    assert file.read_bytes() == PUBLISHED


@pytest.mark.parametrize("size", [len(PUBLISHED), None], ids=["published size", "size not published"])
def test_a_body_without_an_end_is_abandoned_for_the_next_address(host, tmp_path, monkeypatch, size):
    monkeypatch.setattr(download, "_MAX_BYTES", 2 * len(PUBLISHED))
    with serve(HttpHost({"/text.zip": PUBLISHED}, endless=True)) as endless:
        asked = corpus(f"{endless.address}/text.zip", f"{host.address}/text.zip", size=size)
        (file,) = fetch(asked, tmp_path, silent)
        assert file.read_bytes() == PUBLISHED
        with pytest.raises(DataError) as caught:
            fetch(corpus(f"{endless.address}/text.zip", size=size), tmp_path / "other", silent)
    most = size or 2 * len(PUBLISHED)
    assert str(caught.value).endswith(f"{most:,} bytes, got more")
    assert (tmp_path / "other" / "verses" / ".text.zip.part").stat().st_size == 0


def tarred():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        member = tarfile.TarInfo("inner/text")
        member.size = len(TEXT)
        archive.addfile(member, io.BytesIO(TEXT))
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "published"),
    [
        ("text", TEXT, "text.zip"),
        ("text.xz", lzma.compress(TEXT, preset=0), "text.zip"),
        ("text.zip", PUBLISHED, "text.zip"),
        ("text.tar.gz", tarred(), "text.tar.gz"),
    ],
    ids=["plain", "xz", "zip", "tar"],
)
@pytest.mark.parametrize("below", ["", "verses"], ids=["in the folder", "in the corpus' folder"])
def test_a_corpus_is_taken_from_a_folder_as_it_is(tmp_path, name, content, published, below):
    given, asked = tmp_path / "mine" / below, corpus(name=published)
    given.mkdir(parents=True)
    (given / name).write_bytes(content)
    (file,) = copy_from(asked, tmp_path / "mine", tmp_path / "data")
    assert file == tmp_path / "data" / "verses" / name
    assert file.read_bytes() == content
    assert read_source(asked, asked.splits["dev"].source, file.parent) == TEXT
    assert check_availability(asked, tmp_path / "data", verify=True).here


def test_the_first_bytes_of_a_longer_text_may_be_all_that_counts(tmp_path):
    asked = corpus()
    (tmp_path / "text").write_bytes(TEXT + b"more")
    assert read_source(asked, asked.splits["train"].source, tmp_path) == TEXT


def test_reading_a_text_takes_little_more_memory_than_the_text(tmp_path):
    text = b"a line\n" * 300_000
    source = SourceFile(names=("text",), digest=f"sha256:{hashlib.sha256(text).hexdigest()}")
    (tmp_path / "text").write_bytes(text)
    tracemalloc.start()
    assert read_source(corpus(), source, tmp_path) == text
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * len(text)


def fault(tmp_path, name, content):
    """Return the fault that is reported for a file with this content."""
    (tmp_path / "verses").mkdir()
    (tmp_path / "verses" / name).write_bytes(content)
    found = check_availability(corpus(), tmp_path, verify=True)
    assert found.here
    (told,) = found.faults
    return told.replace(str(tmp_path / "verses"), "HERE")


def test_a_text_that_is_cut_short_is_reported(tmp_path, golden):
    golden(fault(tmp_path, "text", TEXT[:-1]))


def test_a_text_with_other_content_is_reported(tmp_path, golden):
    other = TEXT.replace(b"three", b"seven")
    golden(fault(tmp_path, "text", other))


def test_an_archive_without_the_text_is_reported(tmp_path, golden):
    golden(fault(tmp_path, "text.zip", zipped(name="other")))


def test_a_packed_file_that_is_cut_short_is_reported(tmp_path, golden):
    golden(fault(tmp_path, "text.xz", lzma.compress(TEXT, preset=0)[:-50]))


def test_a_missing_text_says_where_it_was_looked_for(tmp_path, golden):
    asked = corpus()
    with golden.raises(DataError):
        read_source(asked, asked.splits["train"].source, tmp_path)
    assert not check_availability(asked, tmp_path).here
