"""Files that a command writes for its user."""

import os
from pathlib import Path

import pytest

from activemem.storage.files import write_file


def test_a_file_is_replaced_and_its_folders_are_made(tmp_path):
    path = tmp_path / "a" / "b" / "page.html"
    write_file(path, "first")
    path.chmod(0o600)
    write_file(path, b"second")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"second", 0o600)
    assert list(path.parent.iterdir()) == [path]


def test_a_write_that_fails_keeps_the_earlier_file(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    write_file(path, "first")

    def fail(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left on device") as failed:
        write_file(path, "second")
    assert failed.value.filename == str(path)
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


def test_links_and_devices_stay_what_they_are(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "page.html")
    write_file(link, "through the link")
    assert link.is_symlink()
    assert (tmp_path / "page.html").read_text() == "through the link"
    write_file(Path(os.devnull), "x")
    assert Path(os.devnull).is_char_device()
