import math
from datetime import UTC, datetime, timedelta, timezone

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from activemem.storage import MetricRow, Store, StoreError

from .factories import make_metric_rows, make_trial_id, make_trial_row

LARGEST = 2**63 - 1


def test_a_trial_comes_back_as_it_was_written(store):
    row = make_trial_row(
        7, seed=-LARGEST - 1, parameters=LARGEST, steps=LARGEST, flops=1e300, epochs=2**31 - 1
    )
    store.write(row, [])
    (back,) = store.trials().rows(named=True)
    assert list(back) == list(row.__slots__)
    assert math.isnan(back["metrics"][1].pop("value"))
    assert back.pop("metrics") == [{"name": "max_length", "value": 30.0}, {"name": "loss"}]
    assert back == {field: getattr(row, field) for field in row.__slots__ if field != "metrics"}


def test_a_failed_trial_keeps_its_reason_and_no_commit(store):
    store.write(
        make_trial_row(status="failed", reason="not a number at epoch 8\nTraceback: …", metrics=()), []
    )
    (back,) = store.trials().rows(named=True)
    assert (back["reason"], back["commit"], back["metrics"]) == (
        "not a number at epoch 8\nTraceback: …",
        None,
        [],
    )


def test_a_reason_that_utf_8_cannot_hold_is_stored_with_escapes(store):
    store.write(make_trial_row(status="failed", reason="no file 'a\udcff'"), [])
    assert store.trials()["reason"].to_list() == [r"no file 'a\udcff'"]


def test_times_are_stored_as_utc(store):
    store.write(make_trial_row(started=datetime(2026, 1, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))), [])
    assert store.trials()["started"].to_list() == [datetime(2025, 12, 31, 23, 30, tzinfo=UTC)]


def test_metrics_come_back_sorted_with_every_kind_of_number(store):
    values = [math.inf, -math.inf, 5e-324, -0.0, 1.5]
    store.write(
        make_trial_row(),
        [MetricRow(step=LARGEST - i, epoch=i, name="loss", value=v) for i, v in enumerate(values)],
    )
    store.write(make_trial_row(1), [MetricRow(step=1, epoch=0, name="loss", value=math.nan)])
    frame = store.metrics()
    assert frame.schema == pl.Schema(
        {
            "trial": pl.String,
            "attempt": pl.Int32,
            "step": pl.Int64,
            "epoch": pl.Int32,
            "name": pl.String,
            "value": pl.Float64,
        }
    )
    assert frame.rows()[:5] == [
        (make_trial_id(0), 0, LARGEST - i, i, "loss", values[i]) for i in reversed(range(len(values)))
    ]
    assert math.isnan(frame["value"][5])


def test_metrics_of_some_trials_are_theirs_alone(store):
    for number in range(3):
        store.write(make_trial_row(number), make_metric_rows(number))
    assert store.metrics([make_trial_id(1), make_trial_id(9)])["trial"].unique().to_list() == [
        make_trial_id(1)
    ]
    assert store.metrics([]).is_empty()


def test_metrics_of_some_names_have_all_their_indices(store):
    names = ("bleu", "bleu[10-20]", "bleu_dev", "loss")
    store.write(make_trial_row(0), [MetricRow(step=1, epoch=1, name=name, value=1.0) for name in names])
    assert store.metrics(names=["bleu"])["name"].to_list() == ["bleu", "bleu[10-20]"]
    assert store.metrics(names=[]).is_empty()


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(st.text(), min_size=4, max_size=4),
    numbers=st.lists(st.integers(-LARGEST - 1, LARGEST), min_size=3, max_size=3),
    real=st.floats(allow_nan=False),
    final=st.lists(st.tuples(st.text(st.characters(codec="utf-8")), st.floats(allow_nan=False))),
)
def test_any_value_of_the_right_type_survives_writing_and_compaction(tmp_path, texts, numbers, real, final):
    texts = [text.encode(errors="backslashreplace").decode() for text in texts]
    row = make_trial_row(
        recipe=texts[0],
        device=texts[1],
        host=texts[2],
        reason=texts[3],
        status="failed",
        seed=numbers[0],
        parameters=numbers[1],
        steps=numbers[2],
        flops=real,
        metrics=tuple(final),
    )
    store = Store(tmp_path)
    store.write(row, [])
    for _ in range(2):
        (back,) = store.trials().rows(named=True)
        back["metrics"] = tuple((pair["name"], pair["value"]) for pair in back["metrics"])
        assert back == {field: getattr(row, field) for field in row.__slots__}
        store.upkeep.compact()


def test_all_faults_of_a_trials_types_are_named_at_once(golden):
    with golden.raises(StoreError):
        make_trial_row(
            attempt=True,
            seed=2**63,
            epochs=2**31,
            recipe=None,
            flops="1",
            metrics=(("loss", "low"),),
            started=datetime(2026, 1, 1),
        )


def test_all_faults_of_a_trials_sense_are_named_at_once(golden):
    with golden.raises(StoreError):
        make_trial_row(
            trial="7C41", study="../up", attempt=-1, status="finished", factors="[1]", settings="{"
        )


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "failed"},
        {"reason": "why"},
    ],
    ids=str,
)
def test_a_reason_goes_with_a_status_that_is_not_done(changes, golden):
    with golden.raises(StoreError):
        make_trial_row(**changes)


def test_a_metric_of_a_wrong_type_is_refused(golden):
    with golden.raises(StoreError):
        MetricRow(step=1.0, epoch=1, name=None, value="1")
