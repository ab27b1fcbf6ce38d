"""Tests of rows with a valid checksum that no store has written: their file is skipped, all else goes on."""

import datetime
import json

import polars as pl
import pytest

from activemem.storage import Store
from activemem.storage.checksums import encode

from .factories import fill_store, make_metric_rows, make_trial_id, make_trial_row

ESCAPES = "\x1b]0;title\x07\x1b[31mred"


def value(name, content, dtype=None):
    return lambda rows: rows.with_columns(pl.lit(content, dtype=dtype).alias(name))


HOSTILE = {
    "an unknown column": value(ESCAPES, 1),
    "a column of another type": value("seed", "x"),
    "numbers as texts": lambda rows: rows.with_columns(pl.col("attempt").cast(pl.String)),
    "wider numbers": lambda rows: rows.with_columns(pl.col("attempt").cast(pl.Int64)),
    "a list": value("recipe", ["sa"]),
    "a time without a zone": lambda rows: rows.with_columns(pl.col("started").dt.replace_time_zone(None)),
    "other metrics": value("metrics", 1.0),
    "no trial": value("trial", None, pl.String),
    "no column of trials": lambda rows: rows.drop("trial"),
    "no column of recipes": lambda rows: rows.drop("recipe"),
    "a trial that is a path": value("trial", "../../../etc/passwd"),
    "a study that is a path": value("study", "../alpha"),
    "an escape as the study": value("study", ESCAPES),
    "an unknown status": value("status", ESCAPES),
    "no status": value("status", None, pl.String),
    "factors that are no JSON": value("factors", "{x}"),
    "factors that are a list": value("factors", "[1]"),
    "factors with a huge number": value("factors", '{"seed": ' + "9" * 5000 + "}"),
    "factors that are deep": value("factors", '{"a":' * 3000 + "1" + "}" * 3000),
    "factors without number": value("factors", json.dumps({f"f{each}": each for each in range(10_001)})),
    "no factors": value("factors", None, pl.String),
    "no parameters": value("parameters", None, pl.Int64),
    "no time": value("finished", None, pl.Datetime("us", "UTC")),
    "a time after all years": value("finished", (1 << 63) - 1, pl.Datetime("us", "UTC")),
    "a time before all years": value("started", -(1 << 62), pl.Datetime("us", "UTC")),
    "no rows and no columns": lambda rows: pl.DataFrame({ESCAPES: []}),
}
OF_METRICS = {
    "an unknown column": value(ESCAPES, 1),
    "a value that is a text": value("value", "1"),
    "a value after no epoch": value("epoch", None, pl.Int32()),
    "a metric without a value": value("value", None, pl.Float64()),
    "a metric without a name": value("name", None, pl.String),
    "a trial that is a path": value("trial", "../x"),
    "no attempt": lambda rows: rows.drop("attempt"),
}


@pytest.fixture
def two(root):
    """Return a store of two studies with merged rows; the first one's file is replaced by a hostile one."""
    store = fill_store(root, [1, 2])
    store.upkeep.compact()
    for number in (3, 4):
        store.write(make_trial_row(number, study="beta"), make_metric_rows())
    return store


def replace(root, dataset, change):
    (path,) = (root / dataset / "alpha").glob("*.parquet")
    path.write_bytes(encode(change(pl.read_parquet(path))))
    return path


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_a_file_of_rows_that_no_store_wrote_is_skipped_and_named(root, two, change, caplog):
    path = replace(root, "trials", change)
    store = Store(root)
    assert set(store.latest_attempts()) == {make_trial_id(3), make_trial_id(4)}
    assert f"trials/alpha/{path.name} is skipped: expected " in caplog.text
    assert len(store.trials()) == len(store.follow()) == 2
    store.upkeep.compact()
    (finding,) = (each for each in store.upkeep.check().findings if each.path == path.relative_to(root))
    assert (finding.kind, store.upkeep.check().has_faults) == ("unreadable", True)
    printed = caplog.text + finding.reason
    assert printed.isprintable() or all(each.isprintable() or each == "\n" for each in printed)
    assert max(map(len, printed.splitlines())) < 400
    assert path.exists()


@pytest.mark.parametrize("change", OF_METRICS.values(), ids=OF_METRICS)
def test_a_file_of_metrics_that_no_store_wrote_is_skipped_and_named(root, two, change, caplog):
    path = replace(root, "metrics", change)
    store = Store(root)
    assert set(store.metrics()["trial"]) == {make_trial_id(3), make_trial_id(4)}
    assert f"metrics/alpha/{path.name} is skipped: expected " in caplog.text
    assert all(each.isprintable() or each == "\n" for each in caplog.text)
    assert any(each.path == path.relative_to(root) for each in store.upkeep.check().findings)


def test_factors_of_any_json_object_are_read(root):
    factors = {"mixer": 'a "quoted" \\ name', "k": [1, 2.5e-3, None], "deep": {"x": True}, "é": "日本"}
    row = make_trial_row(1, factors=json.dumps(factors), started=datetime.datetime.now(datetime.UTC))
    Store(root).write(row, [])
    assert json.loads(Store(root).trials()["factors"][0]) == factors
