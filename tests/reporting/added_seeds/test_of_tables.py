"""Added seeds and tables: a table shows all seeds that count, and says which stored ones it leaves out."""

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


def test_a_table_shows_the_seeds_of_the_file_and_those_that_were_added(tmp_path):
    more = {"sa": 8, "conv(k=3)": 5, "ff(8)": 7}
    table = table_of(*grown(tmp_path / "plain", more=more))
    assert [row[0].count for row in table.cells] == [8, 5, 3, 7]
    assert "mean ± s.d. of 3 to 8 seeds" in table.caption
    assert "95 % interval" in table.remarks[0]


@pytest.mark.parametrize("other", ["", "tiny-best"], ids=["of this study", "of both"])
def test_seeds_that_a_table_leaves_out_are_counted_by_the_study_that_trained_them(tmp_path, other, golden):
    study, store = grown(tmp_path, more={"sa": 5, "conv(k=3)": 4})
    for trial in study.with_later_seeds().trials:
        if other and trial.seed in {1, 6} and trial.levels["mixer"] == "ff(8)":
            store.write(replace(made_row(trial, {"loss": 10.0}, 99), study=other), [])
    listed = load_study(study.document.text.replace("max_seeds = 12\n", ""))
    golden(table_of(listed, store).remarks)
