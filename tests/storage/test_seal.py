"""A file with checksum is read only if unchanged."""

import random
import zipfile

import pytest

from activemem.storage.checksums import sealing, verify_seal
from activemem.storage.errors import DamagedError


def write_archive(file):
    """Write a zip archive like torch's."""
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("data", bytes(range(256)) * 3)


@pytest.fixture
def path(tmp_path):
    path, plain = tmp_path / "state.pt", tmp_path / "plain.pt"
    write_archive(plain)
    with sealing(path) as file:
        for start in range(0, plain.stat().st_size, 100):
            file.write(plain.read_bytes()[start : start + 100])
    return path


def verify(path):
    with path.open("rb") as file:
        verify_seal(file)
        assert file.tell() == 0


def test_a_sealed_archive_opens_as_any_other(path):
    verify(path)
    assert zipfile.ZipFile(path).read("data") == bytes(range(256)) * 3


def test_every_flipped_bit_is_found(path):
    data = bytearray(path.read_bytes())
    for place in range(len(data)):
        for bit in range(8):
            data[place] ^= 1 << bit
            path.write_bytes(data)
            with pytest.raises(DamagedError):
                verify(path)
            data[place] ^= 1 << bit


def test_every_truncation_is_found(path):
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(DamagedError):
            verify(path)


def test_other_damage_is_found(path):
    chance, data = random.Random(0), path.read_bytes()
    for _ in range(300):
        start, length = chance.randrange(len(data)), chance.randrange(1, 400)
        damaged = data[:start] + chance.randbytes(length) + data[start + chance.randrange(400) :]
        path.write_bytes(damaged)
        with pytest.raises(DamagedError):
            verify(path)


@pytest.mark.parametrize("data", [b"", b"no archive", bytes(100), b"activemem.seal.1", b"\xff" * 5000])
def test_bytes_that_are_no_file_of_ours_are_damaged(path, data):
    path.write_bytes(data)
    with pytest.raises(DamagedError):
        verify(path)
