import errno
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from activemem.storage import MetricRow, Store, StoreError, trial_files
from activemem.storage.rows import TRIALS

from .factories import (
    fill_store,
    make_metric_rows,
    make_outputs,
    make_trial_id,
    make_trial_row,
    store_contents,
    uncompacted_path,
)


def test_a_folder_that_does_not_exist_is_an_empty_store(root, store):
    assert store.latest_attempts() == {}
    assert (store.trials().schema, store.trials().height) == (TRIALS, 0)
    assert store.metrics().is_empty()
    assert store.upkeep.compact() == 0
    assert store.damaged == ()
    assert not root.exists()


def test_plain_polars_reads_the_store(root, store):
    fill_store(root, [2, 1])
    fill_store(root, [3], study="beta")
    store.upkeep.compact()
    fill_store(root, [4], study="2024")
    for source in (root / "trials/**/*.parquet", root / "trials"):
        frame = pl.read_parquet(source).sort("trial")
        assert frame.schema == TRIALS
        assert frame["study"].to_list() == ["alpha", "alpha", "beta", "2024"]
        assert frame.equals(store.trials())
    plain = pl.read_parquet(root / "metrics/**/*.parquet")
    keys = ["trial", "attempt", "step", "epoch", "name"]
    assert plain.drop("study").sort(keys).equals(store.metrics())


def test_pandas_and_pyarrow_can_read_the_folder_too(root):
    fill_store(root, [1, 2]).upkeep.compact()
    fill_store(root, [3], study="2024")
    table = pq.read_table(root / "trials")  # what pandas calls
    assert sorted(table["study"].to_pylist()) == ["2024", "alpha", "alpha"]


def test_files_carry_their_schema_version_and_page_checksums(root):
    fill_store(root, [1])
    path = uncompacted_path(root, 1)
    assert pq.read_metadata(path).metadata == {b"activemem.schema": b"4"}
    data = path.read_bytes()
    at = data.index(b"alpha")  # within a page
    path.write_bytes(data[:at] + b"alphA" + data[at + 5 :])
    with pytest.raises(OSError, match="CRC checksum verification failed"):
        pq.ParquetFile(path, page_checksum_verification=True).read()


def test_the_latest_attempt_is_the_one_that_counts(store):
    store.write(make_trial_row(1, attempt=9, status="failed", reason="out of memory"), make_metric_rows(9))
    store.write(make_trial_row(1, attempt=10), make_metric_rows(10))
    store.write(make_trial_row(1, attempt=2, status="failed", reason="time"), make_metric_rows(2))
    for _ in range(2):
        assert store.latest_attempts() == {make_trial_id(1): ("done", 10)}
        assert store.trials()["attempt"].to_list() == [10]
        assert store.metrics()["value"].to_list() == [10.0, 10.0, 20.0, 20.0]
        store.upkeep.compact()


def test_an_attempt_is_never_written_over(store, golden):
    store.write(make_trial_row(1, host="first"), make_metric_rows(1), make_outputs())
    before = store_contents(store.root)
    with golden.raises(StoreError):
        store.write(make_trial_row(1, host="second"), make_metric_rows(2))
    assert str(store_contents(store.root)) == str(before)


def test_an_irregular_file_is_replaced_by_a_row(root, store):
    row, metrics = make_trial_row(1), make_metric_rows(1)
    paths = [uncompacted_path(root, 1, dataset=dataset) for dataset in ("trials", "metrics")]
    for path in paths:
        path.parent.mkdir(parents=True)
    os.mkfifo(paths[0])
    paths[1].mkdir()
    store.write(row, metrics)
    assert set(store.damaged) == {root / "quarantine" / path.relative_to(root) for path in paths}
    assert store.trials()["trial"].to_list() == [row.trial]
    assert not store.metrics().is_empty()


def test_a_trial_that_is_done_stays_done_whatever_a_later_attempt_ends_in(store):
    store.write(make_trial_row(1, attempt=1), make_metric_rows(1))
    store.write(make_trial_row(1, attempt=2, status="failed", reason="out of memory"), make_metric_rows(2))
    for _ in range(2):
        assert store.latest_attempts() == {make_trial_id(1): ("done", 1)}
        assert store.last_numbers() == {make_trial_id(1): 2}
        assert store.trials()["status"].to_list() == ["done"]
        assert store.metrics()["value"].to_list() == [1.0, 1.0, 2.0, 2.0]
        assert (
            store.follow()[make_trial_id(1)]["attempt"],
            store.follow().last_number(make_trial_id(1)),
        ) == (1, 2)
        store.upkeep.compact()
    store.write(make_trial_row(1, attempt=3), make_metric_rows(3))
    assert store.latest_attempts() == {make_trial_id(1): ("done", 3)}


def test_a_trial_that_two_studies_hold_is_counted_once(store):
    store.write(make_trial_row(1), make_metric_rows(1))
    store.write(make_trial_row(1, study="beta"), make_metric_rows(1))
    assert store.trials()["study"].to_list() == ["beta"]
    assert store.metrics().height == 4


def copy_row(store, number, study, factors):
    found = store.trials(columns=("trial", "attempt", "study")).filter(trial=make_trial_id(number))
    store.upkeep.copy_to_search(found.with_columns(factors=pl.lit(factors)), study)


def test_a_search_has_its_own_copy_of_what_another_study_has_trained(root, store):
    fill_store(root, [1, 2])
    fill_store(root, [3], study="beta")
    before, metrics = store.trials(), store.metrics()
    for _ in range(2):  # called again, as after a crash
        copy_row(store, 2, "beta", '{"k": 2}')
        copy_row(store, 2, "gamma", "{}")
    for _ in range(2):
        assert store.trials().equals(before)
        assert store.metrics().equals(metrics)
        beta = store.trials(first=["beta"]).filter(study="beta")
        assert beta["trial"].to_list() == sorted([make_trial_id(2), make_trial_id(3)])
        (copy,) = beta.filter(trial=make_trial_id(2)).iter_rows(named=True)
        assert (copy["factors"], copy["continued_from"], copy["attempt"]) == ('{"k": 2}', copy["trial"], 0)
        course = store.metric_course(None, beta)
        assert course.filter(trial=make_trial_id(2)).height == metrics.filter(trial=make_trial_id(2)).height
        for first in ("alpha", "beta", "gamma"):
            latest = store.follow(first=first)
            rows = store.trials(first=[first])
            assert latest.frame(latest[trial] for trial in rows["trial"]).equals(rows)
            assert store.follow().trials(first).equals(rows)
        store.upkeep.compact()
    assert store.upkeep.check().findings == ()
    store.upkeep.forget("alpha", [make_trial_id(1), make_trial_id(2)])
    assert dict(store.trials().select("trial", "study").iter_rows()).keys() == {
        make_trial_id(2),
        make_trial_id(3),
    }


def test_what_a_search_has_pruned_stays_pruned_for_it_when_another_study_trains_it(store):
    store.write(make_trial_row(1, status="pruned", reason="behind"), make_metric_rows(1))
    store.write(make_trial_row(1, attempt=1, study="beta"), make_metric_rows(1))
    for first, expected in (("alpha", "pruned"), ("beta", "done"), ("gamma", "done")):
        assert store.trials(first=[first])["status"].to_list() == [expected]
        assert store.follow(first=first)[make_trial_id(1)]["status"] == expected


def test_a_search_gives_a_row_of_its_own_the_factors_that_it_has_now(root, store):
    fill_store(root, [1])
    before = store.trials()
    store.upkeep.compact()
    copy_row(store, 1, "alpha", '{"kernel": 2}')
    assert store.trials().equals(before.with_columns(factors=pl.lit('{"kernel": 2}')))


def test_rows_are_sorted_whatever_the_order_of_writing(root, store):
    fill_store(root, [5, 3, 9])
    fill_store(root, [4, 1], study="beta")
    assert store.trials()["trial"].to_list() == [make_trial_id(number) for number in (1, 3, 4, 5, 9)]
    assert list(store.latest_attempts()) == [make_trial_id(number) for number in (1, 3, 4, 5, 9)]
    assert store.metrics()["trial"].is_sorted()


def test_metrics_whose_trial_was_never_stored_are_left_out(root, store):
    fill_store(root, [1, 2])
    uncompacted_path(root, 2).unlink()
    assert store.metrics()["trial"].unique().to_list() == [make_trial_id(1)]


@pytest.mark.parametrize("study", ["", ".", "..", ".hidden", "-f", "_x", "a/b", "a b", "é", "a\n", "x" * 101])
def test_a_name_that_cannot_be_a_folder_is_refused(root, store, study):
    for call in (
        lambda: make_trial_row(study=study),
        lambda: store.records.load(study),
    ):
        with pytest.raises(StoreError, match=f"^study: .*, got {re.escape(repr(study))}$"):
            call()
    assert not root.exists()


@pytest.mark.parametrize("study", ["a", "2024", "algorithmic-small", "v1.2_x", "x" * 100])
def test_a_name_that_can_be_a_folder_is_taken(store, study):
    store.write(make_trial_row(study=study), [])
    assert store.trials()["study"].to_list() == [study]


def test_a_file_is_no_store(tmp_path, golden):
    (tmp_path / "rows.parquet").touch()
    with golden.raises(StoreError):
        Store(tmp_path / "rows.parquet")


def test_a_folder_that_cannot_be_listed_is_an_error_and_no_empty_store(root, store):
    root.mkdir()
    (root / "trials").write_text("no folder")
    with pytest.raises(NotADirectoryError):
        store.latest_attempts()


def test_checkpoints_lie_next_to_the_data(root, store):
    assert store.files.checkpoint_dir(make_trial_id(1)) == root / "checkpoints" / make_trial_id(1)


def test_reading_loads_neither_pyarrow_nor_torch_nor_ray(root):
    fill_store(root, [1])
    script = (
        "import sys; from activemem.storage import Store; "
        f"s = Store({str(root)!r}); s.latest_attempts(); s.trials(); s.metrics(); "
        "print(*sorted({'pyarrow', 'torch', 'ray', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("\n", "")


def test_a_text_path_will_do(root):
    fill_store(root, [1])
    assert Store(str(root)).latest_attempts() == {make_trial_id(1): ("done", 0)}


def test_probes_are_stored_next_to_the_metrics_of_their_trial(store):
    first, second = MetricRow(step=2, epoch=1, name="loss", value=0.5), probe("memory_change[0]", 0.25)
    store.write(make_trial_row(1), [first])
    store.write_probes(make_trial_row(1), [probe("memory_change[0]", 0.75)])
    store.write_probes(make_trial_row(1), [second])
    store.upkeep.compact()
    assert store.metrics().select("name", "value").rows() == [("loss", 0.5), ("memory_change[0]", 0.25)]
    store.write(make_trial_row(1, attempt=1), [first])
    assert store.metrics()["name"].to_list() == ["loss"]  # the model of another attempt is another


def test_the_course_of_one_metric_is_that_of_the_attempts_asked_for_and_reads_their_studies_alone(store):
    rows = [MetricRow(step=n, epoch=n, name=name, value=n / 2) for n in (1, 2) for name in ("loss", "bleu")]
    for number in (1, 2):
        store.write(make_trial_row(number), rows)
    store.write(make_trial_row(1, attempt=1), rows[:2])
    store.write(make_trial_row(3, study="other"), rows)
    (unread,) = (store.root / "metrics" / "other").iterdir()
    unread.write_bytes(b"damaged")
    found = store.metric_course("loss", store.trials().filter(pl.col("trial") == make_trial_id(1)))
    assert store.damaged == ()
    assert found.select("attempt", "epoch", "name", "value").rows() == [(1, 1, "loss", 0.5)]


def probe(name, value):
    return MetricRow(step=2, epoch=1, name=name, value=value)


def test_requested_probes_come_after_the_final_metrics(store):
    for number in (1, 2):
        store.write(make_trial_row(number, metrics=(("loss", 0.5),)), [])
    store.write_probes(
        make_trial_row(2), [probe(name, 0.25) for name in ("theta[luong]", "gamma[1]", "gamma[2]")]
    )
    plain, asked = store.trials(), store.trials(["theta[luong]", "gamma[2]", "bleu"])
    loss = {"name": "loss", "value": 0.5}
    found = [{"name": name, "value": 0.25} for name in ("gamma[2]", "theta[luong]")]
    assert asked["metrics"].to_list() == [[loss], [loss, *found]]
    assert plain["metrics"].to_list() == [[loss], [loss]]
    assert asked.schema == plain.schema
    assert asked.drop("metrics").equals(plain.drop("metrics"))
    store.upkeep.compact()
    assert store.trials(["theta[luong]", "gamma[2]"]).equals(asked)
    store.write(make_trial_row(2, attempt=1, metrics=()), [])
    assert store.trials(["gamma[2]"])["metrics"].to_list() == [[loss], []]
    assert store.trials(["nothing"]).equals(store.trials())


def test_outputs_are_those_of_the_latest_attempts_line_by_line(root, store):
    store.write(make_trial_row(2), [], make_outputs("alpha", "béta\n"))
    store.write(make_trial_row(1), [], make_outputs("old", "older"))
    store.write(make_trial_row(1, attempt=1), [], make_outputs("", beam=1))
    store.write(make_trial_row(3), [])
    for _ in range(2):
        found = store.outputs()
        columns = ("trial", "attempt", "beam", "line", "source", "reference", "output")
        assert found.select(columns).rows() == [
            (make_trial_id(1), 1, 1, 1, "source of ", "right ", ""),
            (make_trial_id(2), 0, 4, 1, "source of alpha", "right alpha", "alpha"),
            (make_trial_id(2), 0, 4, 2, "source of béta\n", "right béta\n", "béta\n"),
        ]
        assert found["length_penalty"].to_list() == [0.6] * 3
        assert store.outputs([make_trial_id(2)]).equals(found[1:])
        store.upkeep.compact()
    assert pl.read_parquet(root / "outputs").drop("study").sort("trial", "attempt", "line")[-3:].equals(found)


def test_a_tuning_is_stored_next_to_probes_and_to_the_outputs_of_the_trial(store):
    store.write(make_trial_row(1), [], make_outputs("trained"))
    store.write_probes(make_trial_row(1), [probe("gamma[1]", 0.25)])
    for beam in (2.0, 4.0):
        store.write_tuning(make_trial_row(1), [probe("beam_tuned", beam)], make_outputs(f"beam {beam:g}"))
    for _ in range(2):
        assert store.metrics().select("name", "value").rows() == [("beam_tuned", 4.0), ("gamma[1]", 0.25)]
        behind = store.trials(["beam_tuned", "gamma[1]"])["metrics"].to_list()[0][-2:]
        assert behind == [{"name": "beam_tuned", "value": 4.0}, {"name": "gamma[1]", "value": 0.25}]
        assert store.outputs()["output"].to_list() == ["trained"]
        assert store.outputs(tuned=True)["output"].to_list() == ["beam 4"]
        store.upkeep.compact()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"epoch": "two", "metrics": {}}',
        '{"epoch": 2}',
        '{"epoch": 2, "metrics": {"loss": "low"}}',
    ],
)
def test_a_note_of_how_far_a_trial_came_that_cannot_be_read_is_none(store, text):
    folder = store.files.checkpoint_dir(make_trial_id(1))
    folder.mkdir(parents=True)
    trial_files.write_note(folder, 2, {"loss": 0.5})
    far = store.files.checkpoint_note(make_trial_id(1))
    assert (far.epoch, far.metrics) == (2, {"loss": 0.5})
    assert abs(far.saved_at.timestamp() - time.time()) < 60
    (folder / "reached.json").write_text(text)
    assert store.files.checkpoint_note(make_trial_id(1)) is None
    (folder / "reached.json").unlink()
    os.mkfifo(folder / "reached.json")  # which nobody waits for
    assert store.files.checkpoint_note(make_trial_id(1)) is None
    shutil.rmtree(folder)
    trial_files.write_note(folder, 3, {"loss": 0.5})  # somebody has cleared it: no trial fails for that
    assert store.files.checkpoint_note(make_trial_id(1)) is None


def test_stores_of_several_machines_are_put_together_by_copying_one_over_another(tmp_path):
    here, there = fill_store(tmp_path / "here", [1, 2, 3]), fill_store(tmp_path / "there", [3, 4])
    fill_store(tmp_path / "there", [5], attempt=1, study="beta")
    there.upkeep.compact()
    there.records.save("beta", {"text": "of beta"})
    shutil.copytree(there.root, here.root, dirs_exist_ok=True)
    whole = fill_store(tmp_path / "whole", [1, 2, 3, 4])
    fill_store(tmp_path / "whole", [5], attempt=1, study="beta")
    for _ in range(2):
        assert here.trials().equals(whole.trials())
        assert here.metrics().equals(whole.metrics())
        here.upkeep.compact()
    assert (here.records.load("beta"), here.damaged) == ({"text": "of beta"}, ())


@pytest.mark.parametrize("folder", ["taken", "taken/results", "link/results"])
def test_a_store_that_cannot_be_written_says_why_and_leaves_nothing(folder, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "missing")
    store = Store(tmp_path / folder)
    (tmp_path / "taken").write_text("a file", encoding="utf-8")
    place = tmp_path / folder.partition("/")[0]
    why = f"{place} is a file" if place.name == "taken" else f"{place} takes no new file"
    with pytest.raises(StoreError, match=re.escape(f"because {why}")):
        store.check_writable()
    assert {each.name for each in tmp_path.iterdir()} == {"link", "taken"}


def test_a_store_of_another_user_that_takes_no_file_names_its_owner(root, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    root.mkdir()
    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(
        StoreError, match=r"denied\)\. Its owner, .+, can grant it \(chmod g\+rwx\), or choose another"
    ):
        Store(root).check_writable()


def test_a_check_of_a_new_store_leaves_no_file(tmp_path):
    Store(tmp_path / "new" / "results").check_writable()
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_was_copied_without_its_metrics_lacks_them(root):
    store = fill_store(root, [1, 2])
    assert not store.lacks_metrics("alpha")
    assert not store.lacks_metrics("beta")
    shutil.rmtree(root / "metrics")
    assert Store(root).lacks_metrics("alpha")
    fill_store(root, [3], study="beta", epochs=0, steps=0)
    shutil.rmtree(root / "metrics")
    assert not Store(root).lacks_metrics("beta")  # it has trained for no epoch


def test_a_huge_reason_is_read_only_in_part_and_kept_as_it_is(root):
    store = fill_store(root, [1], status="failed", reason="x" * 1_000_000)
    fill_store(root, [2], status="failed", reason="not a number")
    for _ in range(2):
        assert store.trials()["reason"].str.len_chars().to_list() == [100_000, 12]
        assert store.trials(columns=("trial", "study", "attempt")).columns == ["trial", "study", "attempt"]
        store.upkeep.compact()
    assert pl.read_parquet(root / "trials")["reason"].str.len_chars().max() == 1_000_000
