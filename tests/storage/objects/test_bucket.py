"""Addresses of buckets, and ownership of objects after lost answers."""

import sys

import pytest

from activemem.storage import Store, StoreError
from activemem.storage.bucket import BucketError, BucketPlace

KEY, NEXT = "leases/0123456789abcdef-0", "leases/0123456789abcdef-1"


def puts(method, _):
    return method == "PUT"


@pytest.mark.parametrize(
    "address",
    [
        "ftp://bucket/x",
        "s3://",
        "s3:/bucket",
        "s3://bucket/../x",
        "s3://other/x",
        "az://box/x",
    ],
)
def test_an_address_that_will_not_do_is_reported_in_one_line(server, monkeypatch, address, golden):
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(StoreError) as caught:
        Store(address)
    golden(str(caught.value).replace(server.environment["AWS_ENDPOINT_URL"], "SERVER"))


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("AWS_ACCESS_KEY_ID", "other"),
        ("AWS_ACCESS_KEY_ID", None),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9"),
    ],
)
def test_wrong_credentials_and_no_network_are_reported_in_one_line(
    server, monkeypatch, variable, value, golden
):
    if value is None:
        monkeypatch.delenv(variable)
    else:
        monkeypatch.setenv(variable, value)
    with pytest.raises(StoreError) as caught:
        Store("s3://bucket")
    golden(str(caught.value).replace(server.environment["AWS_ENDPOINT_URL"], "SERVER"))


def test_missing_credentials_are_reported(server, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(StoreError) as caught:
        Store("s3://bucket")
    assert "no credentials" in str(caught.value)
    assert str(caught.value).endswith("http://127.0.0.1:9")


def test_without_the_extra_the_command_that_installs_it_is_reported(monkeypatch, golden):
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with golden.raises(StoreError):
        Store("s3://bucket/x")


@pytest.mark.parametrize("heeded", ["If-Match", "If-None-Match"])
def test_a_server_without_conditional_writes_is_refused_before_anything_is_claimed(
    server, address, heeded, golden
):
    server.heeds.remove(heeded)
    with golden.raises(StoreError):
        Store(address).leases("run")
    assert server.objects == {}


@pytest.mark.parametrize("folder", ["a%20b", "a%b", "%2e%2e", "größe", "a+b"])
def test_a_folder_of_a_bucket_is_used_as_it_is_written(server, folder):
    place = BucketPlace(f"s3://bucket/{folder}")
    place.put(place.root / "studies" / "one", b"data")
    assert [*server.objects] == [f"{folder}/studies/one"]
    other = BucketPlace(f"s3://bucket/{folder}")
    other.list(other.root / "studies")
    assert [path.name for path in (other.root / "studies").iterdir()] == ["one"]


def test_an_object_is_created_once(address):
    first, second = BucketPlace(address), BucketPlace(address)
    assert first.put_if_absent(first.root / KEY, b"mine")
    assert not second.put_if_absent(second.root / KEY, b"yours")
    assert second.get(second.root / KEY) == b"mine"


def test_a_creation_whose_answer_was_lost_is_known_by_what_was_written(server, address):
    place = BucketPlace(address)
    server.lose.append(puts)
    assert place.put_if_absent(place.root / KEY, b"mine")
    assert server.lose == []
    assert server.log.count(("PUT", f"some/results/{KEY}")) == 2
    place.touch(place.root / KEY, b"!")
    assert place.get(place.root / KEY) == b"mine!"
    server.lose.append(puts)
    assert not place.put_if_absent(place.root / KEY, b"yours")


def test_a_mark_is_added_to_what_this_process_has_created(server, address):
    place, other = BucketPlace(address), BucketPlace(address)
    key = place.root / KEY
    place.put_if_absent(key, b"one\n")
    server.lose.append(puts)
    place.touch(key, b"two")
    assert place.get(key) == b"one\ntwo"
    other.put(other.root / KEY, b"another\n")
    place.touch(key, b"three")
    assert place.get(key) == b"another\n"
    place.put_if_absent(place.root / NEXT, b"one\n")
    other.delete(other.root / NEXT)
    place.touch(place.root / NEXT, b"two")
    with pytest.raises(FileNotFoundError):
        place.get(place.root / NEXT)


def test_a_listing_has_all_pages_and_nothing_outside_the_folder(address):
    place = BucketPlace(address)
    for number in range(120):
        place.put(place.root / "trials" / "a" / str(number), b"")
    place.put(place.root / "trials-2" / "a", b"")
    other = BucketPlace(address)
    other.list(other.root / "trials", other.root / "nothing")
    assert {path.name for path in other.root.rglob("*") if path.is_file()} == set(map(str, range(120)))


def test_a_bucket_that_is_gone_is_an_error_and_no_empty_folder(server, address):
    place = BucketPlace(address)
    del server.buckets["bucket"]
    with pytest.raises(BucketError) as caught:
        place.list(place.root / "trials")
    url = server.environment["AWS_ENDPOINT_URL"]
    assert str(caught.value) == f"{address}/trials: NoSuchBucket (404 Not Found) from {url}"
