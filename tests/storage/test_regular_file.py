"""Irregular files in place of a file are rejected at once."""

import errno
import os
import socket

import pytest

from activemem.storage.errors import UnreadableError
from activemem.storage.files import read_regular


def make_pipe(path):
    os.mkfifo(path)


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def make_link_to_nothing(path):
    path.symlink_to("nowhere")


def make_link_to_itself(path):
    path.symlink_to(path)


IRREGULAR = "expected a file, got a folder, a pipe, a broken link or the like"
KINDS = {
    make_pipe: IRREGULAR,
    make_socket: IRREGULAR,
    os.mkdir: IRREGULAR,
    make_link_to_nothing: IRREGULAR,
    make_link_to_itself: "it cannot be read: Too many levels of symbolic links",
    lambda path: path.symlink_to("/dev/zero"): IRREGULAR,
}


@pytest.mark.parametrize(("make", "reason"), KINDS.items())
def test_an_irregular_file_is_rejected_without_waiting(tmp_path, monkeypatch, make, reason):
    monkeypatch.chdir(tmp_path)  # a socket's path is short
    path = tmp_path.relative_to(tmp_path) / "x"
    make(path)
    with pytest.raises(UnreadableError) as caught:
        read_regular(path)
    assert str(caught.value) == reason


def test_a_file_and_a_link_to_one_are_read(tmp_path):
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "file") == read_regular(tmp_path / "link") == b"text"


def test_a_file_that_does_not_exist_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "file")


@pytest.mark.parametrize(("code", "kind"), [(errno.EACCES, UnreadableError), (errno.EMFILE, OSError)])
def test_errors_of_the_machine_are_not_those_of_a_file(tmp_path, monkeypatch, code, kind):
    def fail(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "open", fail)
    with pytest.raises(kind) as caught:
        read_regular(tmp_path / "file")
    assert type(caught.value) is (kind if kind is UnreadableError else OSError)
