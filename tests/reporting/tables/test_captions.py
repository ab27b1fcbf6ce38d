"""What the sentences over a table say of where its study's settings come from."""

import pytest

from activemem.reporting.tables.captions import sources_sentence
from activemem.studies.schema.source_sheet import Source, SourcedSetting, SourceSheet


def sheet(*settings: tuple[str, str, bool]) -> SourceSheet:
    return SourceSheet(
        settings=tuple(
            SourcedSetting(name=name, value=1, source=Source(origin=origin, detail="why"), is_default=default)
            for name, origin, default in settings
        ),
        is_given=True,
    )


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            [("model.d_model", "paper", False), ("train.lr", "program", False), ("a", "ours", True)],
            "No setting that it gives is ours; 1 default.",
        ),
        ([("train.epochs", "ours", False)], "1 setting is ours: train.epochs; 0 defaults."),
        (
            [("train.epochs", "ours", False), ("factors.seed", "ours", False), ("b", "ours", True)],
            "2 settings are ours: train.epochs, factors.seed; 1 default.",
        ),
    ],
)
def test_settings_that_are_neither_the_papers_nor_its_programs_are_named(settings, sentence):
    assert sources_sentence(sheet(*settings)) == sentence


def test_a_study_that_does_not_say_is_told_as_such():
    nothing = SourceSheet(settings=(), is_given=False)
    assert sources_sentence(nothing) == "The study does not say where its settings come from."
