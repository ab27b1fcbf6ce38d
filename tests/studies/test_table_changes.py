"""A table of a study that was changed on the command line says so."""

from activemem.storage import Store
from activemem.studies.study import load
from activemem.studies.tables import table


def test_a_table_names_the_settings_that_are_not_the_files(tmp_path):
    outcomes = Store(tmp_path).trials()
    as_written = load("algorithmic")
    assert "Other than" not in "".join(table(as_written, as_written.tables[0], outcomes).caption)
    changed = load("algorithmic", ["train.epochs=2", "train.batch_size=8"])
    caption = table(changed, changed.tables[0], outcomes).caption
    assert caption[1] == "Other than in the study's file: train.epochs=2, train.batch_size=8."
