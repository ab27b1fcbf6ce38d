"""Addresses of buckets, and ownership of objects after lost answers."""

import sys

import pytest

from activemem.storage import Bucket, BucketError, Store, StoreError


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
    bucket = Bucket(f"s3://bucket/{folder}")
    bucket.put("studies/one", b"data")
    assert [*server.objects] == [f"{folder}/studies/one"]
    assert [each["path"] for each in bucket.list("studies")] == ["studies/one"]


def test_an_object_is_created_once(address):
    first, second = Bucket(address), Bucket(address)
    first.create("key", b"mine")
    with pytest.raises(FileExistsError):
        second.create("key", b"yours")
    assert second.get("key").data == b"mine"


def test_a_creation_whose_answer_was_lost_is_known_by_what_was_written(server, address):
    bucket = Bucket(address)
    server.lose.append(puts)
    version = bucket.create("key", b"mine")
    assert (version, server.lose) == (bucket.get("key").version, [])
    assert server.log.count(("PUT", "some/results/key")) == 2
    server.lose.append(puts)
    with pytest.raises(FileExistsError):
        bucket.create("key", b"yours")


def test_an_update_is_of_the_version_that_was_read(server, address):
    bucket = Bucket(address)
    version = bucket.put("key", b"one")
    server.lose.append(puts)
    later = bucket.update("key", b"two", version)
    assert later == bucket.get("key").version
    assert bucket.update("key", b"three", version) is None
    assert bucket.get("key").data == b"two"
    bucket.delete(["key"])
    assert bucket.update("key", b"three", later) is None
    assert bucket.get("key") is None


def test_a_listing_has_all_pages_and_nothing_outside_the_folder(address):
    bucket = Bucket(address)
    for number in range(120):
        bucket.put(f"trials/a/{number}", b"")
    bucket.put("trials-2/a", b"")
    assert sorted(each["path"] for each in bucket.list("trials")) == sorted(
        f"trials/a/{n}" for n in range(120)
    )
    assert bucket.list("nothing") == []


def test_a_bucket_that_is_gone_is_an_error_and_no_empty_folder(server, address):
    bucket = Bucket(address)
    del server.buckets["bucket"]
    with pytest.raises(BucketError) as caught:
        bucket.list("trials")
    url = server.environment["AWS_ENDPOINT_URL"]
    assert str(caught.value) == f"{address}/trials: NoSuchBucket (404 Not Found) from {url}"
