"""Getting a corpus: its published files from the net, where a broken download goes on, or from a folder."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from filelock import FileLock

from ...studies.corpora import Corpus, Download
from .sources import DataError, find, home, read, sources

Progress = Callable[[str, int, int | None], None]
"""Told of a file that is fetched: its name, the bytes that are here, and all of them where that is known."""

_CHUNK = 1 << 18  # bytes
_TIMEOUT_S = 60.0
_AGENT = "Mozilla/5.0 (compatible; activemem)"  # some hosts refuse the one that urllib gives by itself
_BEYOND = 416  # the status where all that was asked for is here already


def fetch(corpus: Corpus, folder: Path, progress: Progress) -> list[Path]:
    """The published files of a corpus, below the folder of all data; what is there already is only checked.

    A download that broke off goes on where it stopped. Raises DataError where a file cannot be had from any
    address, or is not the one that was published.
    """
    place = home(corpus, folder)
    for download in corpus.downloads:
        place.mkdir(parents=True, exist_ok=True)
        path = place / download.name
        with FileLock(place / f".{download.name}.lock"):
            if not path.is_file() or _digest(path, download.digest) != download.digest:
                _get(download, path, progress)
    return [place / download.name for download in corpus.downloads]


def take(corpus: Corpus, given: Path, folder: Path) -> list[Path]:
    """Copies of a corpus' files out of a folder of one's own, or out of the corpus' folder there.

    They may be plain or packed. Raises DataError where they are missing, or not as they were published.
    """
    below = home(corpus, given)
    within = below if any(find(corpus, each, below) for each in sources(corpus)) else given
    found = []
    for source in sources(corpus):
        read(corpus, source, within)
        found.append(find(corpus, source, within))
    place = home(corpus, folder)
    place.mkdir(parents=True, exist_ok=True)
    return [_copy(path, place / path.name) for path in dict.fromkeys(found) if path is not None]


def _get(download: Download, path: Path, progress: Progress) -> None:
    """Put a file where it belongs once all of it is here, from the first address that has it."""
    unfinished = path.with_name(f".{path.name}.part")
    failures = []
    for url in download.urls:
        try:
            _go_on(url, unfinished, lambda size, whole: progress(download.name, size, whole))
        except (OSError, HTTPException) as error:
            failures.append(f"  {url}: {error}")
            continue
        found = _digest(unfinished, download.digest)
        if found == download.digest:
            unfinished.replace(path)
            return
        unfinished.unlink()
        failures.append(f"  {url}: expected {download.digest}, got {found}")
    raise DataError("\n".join([f"{download.name} could not be fetched", *failures]))


def _go_on(url: str, unfinished: Path, progress: Callable[[int, int | None], None]) -> None:
    """Fetch what is not here yet; all of it from a host that does not give parts."""
    here = unfinished.stat().st_size if unfinished.exists() else 0
    headers = {"User-Agent": _AGENT} | ({"Range": f"bytes={here}-"} if here else {})
    try:
        response: HTTPResponse = urlopen(Request(url, headers=headers), timeout=_TIMEOUT_S)
    except HTTPError as error:
        with error:
            if error.code == _BEYOND:
                return
            raise
    with response, unfinished.open("ab") as file:
        if response.status != 206:
            here = 0
            file.truncate(0)
        length = response.headers.get("Content-Length")
        whole = here + int(length) if length else None
        while chunk := response.read(_CHUNK):
            here += file.write(chunk)
            progress(here, whole)
        file.flush()
        os.fsync(file.fileno())
    if whole is not None and here < whole:
        raise OSError(f"expected {whole:,} bytes, got {here:,}")


def _digest(path: Path, like: str) -> str:
    rule = like.partition(":")[0]
    with path.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.new(rule, usedforsecurity=False))
    return f"{rule}:{found.hexdigest()}"


def _copy(path: Path, target: Path) -> Path:
    """A copy that is there in full or not at all."""
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.copyfile(path, unfinished)
    unfinished.replace(target)
    return target
