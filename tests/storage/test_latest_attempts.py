"""A follower of a store sees its full contents, and reads no file twice."""

from activemem.storage import Store, read

from .factories import fill_store, make_metric_rows, make_trial_id, make_trial_row


def same(latest, store):
    rows = store.trials()
    return latest.frame(latest[trial] for trial in rows["trial"]).equals(rows) and len(latest) == len(rows)


def test_a_refresh_shows_new_rows_and_later_attempts_replace_earlier_ones(tmp_path):
    store = Store(tmp_path)
    latest = store.follow()
    assert not latest
    store.write(make_trial_row(1, status="failed", reason="out of memory"), make_metric_rows(1))
    store.write(make_trial_row(2, study="beta"), make_metric_rows(2))
    assert not latest
    latest.refresh()
    assert same(latest, store)
    store.write(make_trial_row(1, attempt=10), make_metric_rows(1))
    store.write(make_trial_row(1, attempt=2, status="failed", reason="time"), make_metric_rows(1))
    latest.refresh()
    assert same(latest, store)
    assert latest[make_trial_id(1)]["attempt"] == 10
    assert latest.since(2) == [make_trial_id(1)], "expected the trial again whose later attempt counts"


def test_a_file_is_read_once_and_a_merged_one_as_a_new_one(tmp_path, monkeypatch):
    store, reads, add = Store(tmp_path), [], read.LatestAttempts._add
    monkeypatch.setattr(read.LatestAttempts, "_add", lambda *row: reads.append(row) or add(*row))
    latest = store.follow()
    for number in range(5):
        store.write(make_trial_row(number), make_metric_rows(number))
        latest.refresh()
    store.write(make_trial_row(5), make_metric_rows(5))
    store.upkeep.compact()
    latest.refresh()
    latest.refresh()
    assert len(reads) == 5 + 6
    assert same(latest, store)


def test_a_file_that_a_compaction_takes_away_meanwhile_is_found_in_the_merged_one(tmp_path, monkeypatch):
    store, read_verified = Store(tmp_path), read.read_verified
    latest = store.follow()
    for number in range(3):
        store.write(make_trial_row(number), make_metric_rows(number))

    def compact_first(path, quarantine):
        monkeypatch.undo()  # the compaction reads files, too
        store.upkeep.compact()
        return read_verified(path, quarantine)

    monkeypatch.setattr(read, "read_verified", compact_first)
    latest.refresh()
    assert same(latest, store)


def test_a_damaged_file_is_quarantined_and_its_trials_are_missing(tmp_path):
    store = Store(tmp_path)
    store.write(make_trial_row(1), make_metric_rows(1))
    store.write(make_trial_row(2), make_metric_rows(2))
    path = next(tmp_path.glob(f"trials/*/{make_trial_id(1)}-0.parquet"))
    path.write_bytes(path.read_bytes()[:-9])
    latest = store.follow()
    assert list(latest) == [make_trial_id(2)]
    assert len(store.damaged) == 1


def test_an_irregular_metrics_file_makes_its_trials_incomplete_at_once(tmp_path):
    store = fill_store(tmp_path, range(3))
    store.upkeep.compact()
    (merged,) = (tmp_path / "metrics" / "alpha").iterdir()
    merged.unlink()
    merged.symlink_to("nothing")
    assert {status for status, _ in Store(tmp_path).latest_attempts().values()} == {"incomplete"}
