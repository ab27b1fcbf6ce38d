"""Tables mark cells whose trainings have not learnt the task."""

from typing import Any

import polars as pl
import pytest

from activemem import Study, StudyError, load_study
from activemem.reporting import Table
from activemem.reporting.kinds import build_table
from activemem.storage.rows import trial_frame

from ...golden import GoldenTexts
from ...study_texts import study_text
from ..conftest import made_row

ACCURACIES = {"sa": (0.9, 0.8, 0.7), "lstm": (0.1, 0.9, 0.25), "gru": (0.1,)}


def study_of(**keys: Any) -> Study:
    return load_study(
        study_text(
            model={"recipe": "{mixer}"},
            task={"name": "copy"},
            factors={"mixer": [*ACCURACIES], "task": None, "seed": [0, 1, 2]},
            table=[{"name": "costs", "rows": "mixer", "value": "loss", **keys}],
        )
    )


def table_of(study: Study) -> Table:
    rows = [
        made_row(trial, {"loss": 1.0, "accuracy": ends[seed]}, number)
        for number, trial in enumerate(study.trials)
        if (seed := int(trial.levels["seed"])) < len(ends := ACCURACIES[str(trial.levels["mixer"])])
    ]
    return build_table(study, study.tables[0], pl.concat(map(trial_frame, rows)))


def notes_of_rows(made: Table) -> list[list[str]]:
    texts = {note.mark: note.text for note in made.footnotes}
    return [[texts[mark] for mark in cells[-1].marks] for cells in made.cells]


def test_a_cell_says_how_many_of_its_trainings_learnt_too_little(golden):
    made = table_of(study_of(untrained={"accuracy": 0.5}))
    golden([", ".join(notes) for notes in notes_of_rows(made)])
    assert [cells[-1].text for cells in made.cells] == ["1.0000"] * 3


def test_a_table_without_the_key_marks_nothing():
    assert notes_of_rows(table_of(study_of()))[1] == []


def test_a_lower_value_is_better_for_a_loss(golden):
    made = table_of(study_of(untrained={"loss": 0.5}))
    golden(notes_of_rows(made)[0])


@pytest.mark.parametrize(
    "metric",
    [
        "acuracy",
        "gamma",
    ],
)
def test_an_unknown_metric_or_one_without_a_direction_is_refused(metric: str, golden: GoldenTexts):
    with golden.raises(StudyError):
        study_of(untrained={metric: 0.5})
