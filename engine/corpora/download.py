"""Downloads of datasets, which resume after an interruption, and copies of datasets from a folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from ...storage.files import put_in_place, replacing
from ...studies.catalog.datasets import Dataset, Download
from .availability import Availability, check_availability, check_folder
from .files import DataError, dataset_folder, file_digest, locked, missing_error

Progress = Callable[[str, int, int | None], None]
"""Callback for a download: file name, bytes so far, and total bytes if known."""

_CHUNK = 1 << 18  # bytes
_MAX_BYTES = 1 << 33  # for files of unpublished size; three times the largest known one
_TIMEOUT_S = 60.0
_AGENT = "Mozilla/5.0 (compatible; activemem)"  # some hosts reject urllib's default
_RANGE_NOT_SATISFIABLE = 416  # the HTTP status of a request for more of a complete file


def fetch(dataset: Dataset, folder: Path, progress: Progress) -> list[Path]:
    """Download the files of a dataset.

    They go into the folder of all data. Files that are already there are checked. A broken download resumes
    where it stopped. Raise DataError if no address has a file, if a file differs from the published file, or
    if a dataset has no address. In the last case the message explains what to do by hand.
    """
    found = check_availability(dataset, folder)
    if found.here and not check_availability(dataset, folder, verify=True).faults:
        return list(found.files)
    for download in dataset.downloads:
        path = found.folder / download.name
        with locked(path):
            if not path.is_file() or file_digest(path, download.digest) != download.digest:
                _get(download, path, progress)
    if dataset.manual_instructions is None:
        return [found.folder / download.name for download in dataset.downloads]
    raise _manual_download_error(check_availability(dataset, folder, verify=True))


def copy_from(dataset: Dataset, origin: Path, folder: Path) -> list[Path]:
    """Copy a dataset's files, compressed or not, from the folder `origin`.

    The files may also lie in the folder of the dataset inside `origin`. Raise DataError if files are missing
    or differ from the published files.
    """
    below = check_folder(dataset_folder(dataset, origin), dataset)
    within = below.folder if below.files or below.faults else origin
    found = check_folder(within, dataset, verify=True)
    if faults := [*found.faults, *(str(missing_error(dataset, files)) for files in found.missing)]:
        raise DataError("\n".join(faults))
    place = dataset_folder(dataset, folder)
    copies = {path: place / path.relative_to(within) for path in found.files}
    for path, copy in copies.items():
        with replacing(copy) as temporary:
            shutil.copyfile(path, temporary)
    return list(copies.values())


def _manual_download_error(found: Availability) -> DataError:
    name = found.dataset.name
    expected = [f"expected {files}, got nothing" for files in found.missing]
    return DataError(
        "\n  ".join(
            [
                f"{name} cannot be downloaded: {found.dataset.manual_instructions}",
                *found.faults,
                *expected,
                f"put them there, or copy them: activemem data fetch {name} --from FOLDER",
            ]
        )
    )


def _get(download: Download, path: Path, progress: Progress) -> None:
    """Download a file from the first address that serves it. `path` appears only when it is complete."""
    unfinished = path.with_name(f".{path.name}.part")
    failures = []
    for url in download.urls:
        try:
            _resume_download(
                url,
                unfinished,
                lambda size, total: progress(download.name, size, total),
                max_bytes=download.size or _MAX_BYTES,
            )
        except (OSError, HTTPException) as error:
            failures.append(f"  {url}: {error}")
            continue
        found = file_digest(unfinished, download.digest)
        if found == download.digest:
            put_in_place(unfinished, path)
            return
        unfinished.unlink()
        failures.append(f"  {url}: expected {download.digest}, got {found}")
    raise DataError("\n".join([f"{download.name} could not be fetched", *failures]))


def _resume_download(
    url: str, unfinished: Path, progress: Callable[[int, int | None], None], *, max_bytes: int
) -> None:
    """Download the missing part of a file.

    If the host does not serve ranges, download all of it. Raise OSError if the connection breaks or the host
    sends more than `max_bytes`; in that case nothing is kept.
    """
    here = unfinished.stat().st_size if unfinished.exists() else 0
    headers = {"User-Agent": _AGENT} | ({"Range": f"bytes={here}-"} if here else {})
    try:
        response: HTTPResponse = urlopen(Request(url, headers=headers), timeout=_TIMEOUT_S)
    except HTTPError as error:
        with error:
            if error.code == _RANGE_NOT_SATISFIABLE:  # nothing is missing; the checksum decides
                return
            raise
    with response, unfinished.open("ab") as file:
        if response.status != 206:  # the host ignores ranges and sends the file from its beginning
            here = 0
            file.truncate(0)
        length = response.headers.get("Content-Length", "")
        total = here + int(length) if length.isascii() and length.isdigit() else None
        while chunk := response.read(_CHUNK):
            here += len(chunk)
            if here > max_bytes:
                file.truncate(0)
                raise OSError(f"expected at most {max_bytes:,} bytes, got more")
            file.write(chunk)
            progress(here, total)
    if total is not None and here < total:
        raise OSError(f"expected {total:,} bytes, got {here:,}")
