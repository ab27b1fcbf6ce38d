"""Faults: clients that send nothing, and stores that cannot be read."""

import json
import re
import resource
import shutil
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from http.client import HTTPConnection
from urllib.parse import quote

import polars as pl
import pytest

from activemem.storage import Store
from activemem.storage.checksums import encode, encode_record

from .conftest import fill, get, serving, wait_for

STUDY = "/study/everything"
MAX_DESCRIPTORS = 256


def half_sent(port, count):
    """Return connections whose requests are not complete."""
    opened = []
    with suppress(OSError):
        for _ in range(count):
            opened.append(socket.create_connection(("127.0.0.1", port), timeout=3))
            opened[-1].sendall(b"GET / HTTP/1.1\r\nHost: localh")
    return opened


def test_400_half_sent_requests_keep_nobody_from_a_page_with_256_descriptors(tmp_path, drawn):
    fill(Store(tmp_path / "results"), drawn)
    process = subprocess.Popen(
        [sys.executable, "-m", "activemem", "serve", "--port", "0"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (MAX_DESCRIPTORS,) * 2),
    )
    try:
        port = int(re.search(r":(\d+)/", process.stdout.readline())[1])
        opened = half_sent(port, 400)
        assert len(opened) == 400
        with closing(HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
            connection.request("GET", STUDY)
            assert connection.getresponse().status == 200
        for each in opened:
            each.close()
    finally:
        process.terminate()
        _, told = process.communicate(timeout=60)
    assert told == ""


def test_more_viewers_than_connections_all_get_their_page(still):
    with ThreadPoolExecutor(200) as viewers:
        assert {answer.status for answer, _ in viewers.map(lambda _: get(still, STUDY), range(200))} == {200}


def test_a_request_that_is_not_sent_in_time_is_cut_off(still, monkeypatch):
    monkeypatch.setattr("activemem.reporting.serve.http_server.REQUEST_S", 0.1)
    (waiting,) = half_sent(still.port, 1)
    with closing(waiting):
        waiting.settimeout(60)
        assert waiting.recv(1) == b""
    assert get(still, "/")[0].status == 200


@pytest.mark.parametrize(
    "sent",
    [b"GET /\r\n\r\n", b"\x16\x03\x01\r\n\r\n", b"GET /" + b"a" * 70_000, b"GET / HTTP/9.9\r\n\r\n"],
    ids=["no version", "TLS", "long", "another version"],
)
def test_a_request_that_is_no_request_is_refused(still, sent):
    with closing(socket.create_connection(("127.0.0.1", still.port), timeout=60)) as connection:
        connection.sendall(sent)
        with suppress(ConnectionResetError):
            assert b"<html" not in connection.recv(65_536)
    assert get(still, "/")[0].status == 200


def test_a_store_that_cannot_be_read_is_one_calm_page_until_it_can(tmp_path, drawn):
    told, store = [], Store(tmp_path / "results")
    fill(store, drawn)
    kept = tmp_path / "results" / "trials"
    with serving(store, report_fault=told.append) as server:
        assert get(server, STUDY)[0].status == 200
        shutil.move(kept, tmp_path / "aside")
        kept.write_text("no folder", encoding="utf-8")
        wait_for(server, STUDY, "error", str(kept))
        for path in (STUDY, "/", STUDY):
            answer, page = get(server, path)
            assert answer.status == 503
            assert "This page cannot be made now" in page
            assert "Traceback" not in page
        assert len(told) == 1
        assert "\n" not in told[0]
        kept.unlink()
        shutil.move(tmp_path / "aside", kept)
        wait_for(server, STUDY, "progress", "19 of 36 trials done")


def test_a_store_that_could_never_be_read_is_a_page_as_well(tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "trials").write_text("no folder", encoding="utf-8")
    with serving(Store(tmp_path / "results")) as server:
        for _ in range(3):
            answer, page = get(server, "/")
            assert answer.status == 503
            assert "AssertionError" not in page


def test_a_record_of_another_version_hides_only_its_own_study(drawn, tmp_path):
    store = Store(tmp_path / "results")
    fill(store, drawn)
    page = {"schema": 99, "remembered": "2026-12-01T00:00:00+00:00", "record": {"text": "x", "overrides": []}}
    (store.root / "studies/later.json").write_bytes(encode_record(page, indent=2))
    with serving(store) as server:
        home = get(server, "/")[1]
        assert STUDY in home
        assert "expected schema 1, got 99" in home
        assert get(server, STUDY)[0].status == 200
        answer, text = get(server, "/study/later")
        assert (answer.status, "expected schema 1, got 99" in text) == (404, True)


def test_hostile_texts_of_rows_reach_no_page_as_they_are(drawn, tmp_path):
    store = Store(tmp_path / "results")
    fill(store, drawn)
    markup = "\x1b]0;title\x07\x1b[31m\u202e<script>alert(1)</script>"
    (path,) = (store.root / "trials/everything").glob("compacted-*") if store.upkeep.compact() else ()
    rows = pl.read_parquet(path)
    failed = pl.col("status") == "failed"
    texts = ["host", "commit", "device", "version", "recipe", "recipe_id", "task"]
    hostile = rows.with_columns(
        *(pl.lit(markup).alias(name) for name in texts),
        reason=pl.when(failed).then(pl.lit(f"{markup}\n{markup}")).otherwise("reason"),
    )
    others = hostile.with_columns(
        trial=pl.format("{}{}", pl.lit("f"), pl.col("trial").str.tail(15)),
        factors=pl.lit(json.dumps({markup: markup, "mixer": markup})),
        settings=pl.lit(json.dumps({markup: markup})),
    )
    path.write_bytes(encode(pl.concat([hostile, others])))
    with serving(Store(store.root)) as server:
        for each in ("/", STUDY, f"{STUDY}?order={quote(markup)}", f"/study/{quote(markup)}"):
            answer, text = get(server, each)
            assert answer.status in (200, 404)
            assert "<script>alert" not in text
            assert all(sign.isprintable() or sign in "\n\t" for sign in text)
