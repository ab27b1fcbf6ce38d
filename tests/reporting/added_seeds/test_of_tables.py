"""Added seeds and tables: a table shows the seeds of the file, and says which stored ones it leaves out."""

import random
from dataclasses import replace

import pytest

from activemem import load_study
from activemem.reporting.kinds import build_table
from activemem.storage import Store

from ...study_texts import study_text
from ..conftest import made_row

TABLE = {"name": "ablation", "rows": "changes", "value": "loss"}
SHIFTS = {"sa": 0.0, "conv(k=3)": 5.0, "conv(k=9)": 0.4, "ff(8)": 0.02}


def grown(folder, *, more):
    """Return a study of four mixers that may add seeds, and its store, with `more` seeds for some."""
    study = load_study(
        study_text(
            study={"max_seeds": 12},
            factors={"mixer": list(SHIFTS), "task": ["sort"], "seed": [0, 1, 2]},
            table=[TABLE],
        )
    )
    store = Store(folder)
    for number, trial in enumerate(study.with_later_seeds().trials):
        mixer, seed = trial.levels["mixer"], int(trial.levels["seed"])
        draw = random.Random(f"{mixer} {seed}")
        if seed < more.get(mixer, 3):
            end = {"loss": 10 + SHIFTS[mixer] + draw.gauss(0, 0.2)}
            store.write(made_row(trial, end, number), [])
    return study, store


def table_of(study, store):
    return build_table(study, study.tables[0], store.trials({"loss"}))


def test_a_table_shows_the_seeds_of_the_file(tmp_path):
    more = {"sa": 8, "conv(k=3)": 5, "ff(8)": 7}
    table = table_of(*grown(tmp_path / "plain", more=more))
    assert [row[0].count for row in table.cells] == [3, 3, 3, 3]
    assert table.caption[1].startswith("Left out: 11 stored trials of seeds 3 to 7, which")
    assert "95 % interval" in table.caption[2]


@pytest.mark.parametrize("more", [{}, {"sa": 5, "conv(k=3)": 4}], ids=["of another study", "of both"])
def test_seeds_that_a_table_leaves_out_are_counted_by_the_study_that_trained_them(tmp_path, more, golden):
    study, store = grown(tmp_path, more=more)
    for trial in study.with_later_seeds().trials:
        if trial.levels["mixer"] == "ff(8)" and trial.seed in {5, 6}:
            store.write(replace(made_row(trial, {"loss": 10.0}, 99), study="tiny-best"), [])
    golden(table_of(study, store).caption[1])
