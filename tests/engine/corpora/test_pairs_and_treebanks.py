"""Pairs and treebanks from a server and from folders."""

import gzip
import hashlib
import io
import lzma
import zipfile
from dataclasses import replace

import pytest

from activemem import SourceFile
from activemem.engine import DataError, check_availability, copy_from, fetch
from activemem.engine.corpora.availability import available_datasets
from activemem.engine.corpora.files import iter_lines
from activemem.engine.corpora.treebank_files import read_treebank
from activemem.studies.catalog.datasets import Download, PairFiles, ParallelCorpus, Treebank

from .http_host import HttpHost, serve

SPLITS = ("train", "dev", "test")
TREES = {
    1: b"( (NP (NN one)))\n( (NP (NN two)))\n",
    2: b"( (S (NP (NN three))))\n",
    7: b"( (NP (NN four)))\n",
}


def digest(data, rule="sha256"):
    return f"{rule}:{hashlib.new(rule, data).hexdigest()}"


def zipped(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return file.getvalue()


PACKED = {
    f"{split}.{side}.gz": gzip.compress(f"{split} {side}\n".encode()) for split in SPLITS for side in "ab"
}
ARCHIVE = zipped({f"{split}.{side}": f"{split} {side}\n".encode() for split in SPLITS for side in "ab"})
BANK = zipped({f"bank/all/wsj_{number:04}.mrg": text for number, text in TREES.items()})


def pairs(home="pairs", **more):
    return ParallelCorpus(
        name=home,
        title="a line a split",
        languages=("a", "b"),
        folder=home,
        pairs=1,
        licence="none",
        source="made here",
        **more,
    )


def packed(host):
    """Return pairs published in separate files."""
    files = {}
    for split in SPLITS:
        texts = {side: f"{split} {side}\n".encode() for side in "ab"}
        sides = [
            SourceFile(names=(f"{split}.{side}",), size=len(text), digest=digest(text))
            for side, text in texts.items()
        ]
        files[split] = (PairFiles(source=sides[0], target=sides[1]),)
    downloads = (
        Download(name=name, urls=(f"{host.address}/{name}",), digest=digest(data))
        for name, data in PACKED.items()
    )
    return pairs(files=files, downloads=tuple(downloads))


def archived(host):
    """Return pairs published in one archive, without checksums of its members."""
    files = {
        split: (
            PairFiles(
                source=SourceFile(names=(f"{split}.a",), archive="pairs.zip"),
                target=SourceFile(names=(f"{split}.b",), archive="pairs.zip"),
            ),
        )
        for split in SPLITS
    }
    download = Download(name="pairs.zip", urls=(f"{host.address}/pairs.zip",), digest=digest(ARCHIVE))
    return pairs(files=files, downloads=(download,))


def bank(*downloads, **more):
    return Treebank(
        name="bank",
        title="four trees",
        folder="bank",
        downloads=downloads,
        splits={"train": (range(1, 2), range(2, 4)), "dev": (range(7, 8),)},
        sentences={"train": 3, "dev": 1},
        licence="none",
        source="made here",
        **more,
    )


def published(host):
    """Return a treebank published in one archive."""
    download = Download(name="bank.zip", urls=(f"{host.address}/bank.zip",), digest=digest(BANK, "md5"))
    return bank(download, digest=digest(b"".join(TREES.values())))


def silent(name, size, whole):
    """Ignore progress."""


@pytest.fixture
def host():
    served = {f"/{name}": data for name, data in PACKED.items()}
    with serve(HttpHost(served | {"/pairs.zip": ARCHIVE, "/bank.zip": BANK})) as running:
        yield running


@pytest.mark.parametrize("made", [packed, archived, published], ids=["one by one", "archive", "treebank"])
def test_published_files_are_fetched_once_and_checked(host, tmp_path, made):
    asked = made(host)
    files = fetch(asked, tmp_path, silent)
    assert [path.name for path in files] == [each.name for each in asked.downloads]
    found = check_availability(asked, tmp_path, verify=True)
    assert (found.files, found.missing, found.faults) == (tuple(files), (), ())
    requests = len(host.requests)
    assert fetch(asked, tmp_path, silent) == files
    assert len(host.requests) == requests == len(asked.downloads)


def test_a_broken_download_of_an_archive_continues_where_it_stopped(host, tmp_path):
    asked, host.byte_limit = archived(host), 100
    with pytest.raises(DataError):
        fetch(asked, tmp_path, silent)
    assert check_availability(asked, tmp_path).missing == (f"pairs.zip in {tmp_path / 'pairs'}",)
    host.byte_limit = None
    fetch(asked, tmp_path, silent)
    assert host.requests[-1] == ("/pairs.zip", "bytes=100-")
    source = asked.files["dev"][0].source
    assert list(iter_lines(asked, source, tmp_path / "pairs")) == [b"dev a\n"]


def test_an_archive_with_other_content_is_reported_once_and_fetched_again(host, tmp_path):
    asked = archived(host)
    (path,) = fetch(asked, tmp_path, silent)
    path.write_bytes(ARCHIVE + b"!")
    assert check_availability(asked, tmp_path, verify=True).faults == (
        f"pairs: {path}: expected {digest(ARCHIVE)}, got {digest(ARCHIVE + b'!')}",
    )
    fetch(asked, tmp_path, silent)
    assert path.read_bytes() == ARCHIVE


def test_a_treebank_without_an_address_is_reported_with_all_missing_and_wrong_files(tmp_path, golden):
    sides = [SourceFile(names=(f"x.{side}",), size=2, digest=digest(side.encode() + b"\n")) for side in "ab"]
    files = {"train": (PairFiles(source=sides[0], target=sides[1]),)}
    asked, place = pairs(files=files, manual_instructions="write them yourself"), tmp_path / "pairs"
    place.mkdir()
    (place / "x.a").write_bytes(b"c\n")
    with golden.raises(DataError):
        fetch(asked, tmp_path, silent)
    (place / "x.a").write_bytes(b"a\n")
    (place / "x.b.xz").write_bytes(lzma.compress(b"b\n"))
    assert fetch(asked, tmp_path, silent) == [place / "x.a", place / "x.b.xz"]


def loose(folder):
    for number, text in TREES.items():
        (folder / f"{number // 2}").mkdir(parents=True)
        (folder / f"{number // 2}" / f"wsj_{number:04}.mrg").write_bytes(text)
    (folder / "not one of themes.mrg").write_bytes(b"not")


def joined(folder):
    rows = "".join(f"wsj_{number:04}.mrg\t{len(text)}\t1\n" for number, text in TREES.items())
    (folder / "all.index.tsv").write_text(f"file\tbytes\ttrees\n{rows}")
    (folder / "all.mrg.xz").write_bytes(lzma.compress(b"".join(TREES.values())))


def zip_of_all(folder):
    (folder / "bank.zip").write_bytes(BANK)


@pytest.mark.parametrize("write", [loose, joined, zip_of_all])
@pytest.mark.parametrize("below", ["", "bank"], ids=["in the folder", "in the treebank's folder"])
def test_a_treebank_is_taken_from_a_folder_in_any_of_its_forms(host, tmp_path, write, below):
    given = tmp_path / "mine" / below
    given.mkdir(parents=True)
    write(given)
    files = copy_from(published(host), tmp_path / "mine", tmp_path / "data")
    assert files == sorted(path for path in (tmp_path / "data").rglob("*") if path.is_file())
    assert not any(path.name == "notes.mrg" for path in files)
    assert check_availability(published(host), tmp_path / "data", verify=True).faults == ()
    assert read_treebank(published(host), tmp_path / "data" / "bank") == list(TREES.items())


def test_a_treebank_lacks_what_some_range_has_nothing_of_and_is_taken_only_whole(tmp_path, golden):
    loose(tmp_path / "bank")
    (tmp_path / "bank" / "1" / "wsj_0002.mrg").unlink()
    with golden.raises(DataError):
        copy_from(bank(), tmp_path, tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_a_treebank_with_other_files_is_reported(host, tmp_path):
    loose(tmp_path / "bank")
    (tmp_path / "bank" / "3" / "wsj_0007.mrg").write_bytes(b"( (NP (NN five)))\n")
    (told,) = check_availability(published(host), tmp_path, verify=True).faults
    assert told.startswith(f"bank: {tmp_path / 'bank'}: expected {published(host).digest}, got sha256:")
    assert check_availability(bank(), tmp_path, verify=True).faults == ()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("all.index.tsv", b"file\nwsj_1.mrg\t3\n"),
        ("all.mrg.xz", b"no archive"),
        ("bank.zip", b"no archive"),
    ],
)
def test_a_treebank_that_is_damaged_is_reported_with_its_file(host, tmp_path, name, content, golden):
    place = tmp_path / "bank"
    place.mkdir()
    if name != "bank.zip":
        joined(place)
    (place / name).write_bytes(content)
    (told,) = check_availability(published(host), tmp_path, verify=True).faults
    golden(told.partition(", got ")[0])
    fetched = fetch(published(host), tmp_path, silent) if name == "bank.zip" else None
    assert fetched is None or check_availability(published(host), tmp_path, verify=True).faults == ()


def test_an_index_without_its_file_is_reported(tmp_path, golden):
    joined(tmp_path)
    (tmp_path / "all.mrg.xz").unlink()
    with golden.raises(DataError):
        read_treebank(bank(), tmp_path)


def test_a_corpus_is_available_if_it_has_a_file_of_its_own(host, tmp_path):
    one = packed(host)
    other = replace(
        one,
        name="more",
        files=one.files
        | {"train": (*one.files["train"], PairFiles(source=SourceFile(names=("y",), size=0, digest="")))},
    )
    fetch(one, tmp_path, silent)
    assert not check_availability(other, tmp_path).here
    assert available_datasets([one, other], tmp_path) == [one]
    (tmp_path / "pairs" / "train.a.gz").unlink()
    assert available_datasets([one, other], tmp_path) == [one, other]
    assert available_datasets([one, other], tmp_path / "elsewhere") == []
